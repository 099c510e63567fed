// Package tcpstore is a server of c10d's TCPStore protocol, so that the store
// of a run need not live in one of its agents. In come the bytes of torch's
// clients, of both dialects; out go the replies that torch's own server gives.
// One server holds the keys of many runs: a run's are gone once its last
// connection is. wire.go is the stream's grammar and store.go the keys, both
// without net, clock or log; server.go and conn.go are the connections.
//
// Clients never reconnect, so that a connection is only ever cut where it
// breaks a limit. Everything is in memory: nothing outlives the connections.
package tcpstore
