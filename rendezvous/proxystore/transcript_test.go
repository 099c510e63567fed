package proxystore

import (
	"path/filepath"
	"testing"

	"github.com/tegen-dev/tegen/rendezvous/test/wiretest"
)

// replay plays the clients to a run of their own.
func replay(t *testing.T, at, file string, split func([]byte) [][]byte) {
	t.Helper()
	p := newPod(t, at, Options{Run: newRun()})
	wiretest.Replay(t, p.address, wiretest.Transcript(t, file), split)
}

// TestTranscripts plays what the server in memory is held to. Queues are not served, nor several runs by one proxy.
func TestTranscripts(t *testing.T) { ways(t, transcriptsWay) }

func transcriptsWay(t *testing.T, at string) {
	for _, name := range []string{"old.txt", "recent.txt"} {
		t.Run(name, func(t *testing.T) {
			replay(t, at, filepath.Join("../tcpstore/testdata", name), wiretest.Whole)
			replay(t, at, filepath.Join("../tcpstore/testdata", name), wiretest.Single)
		})
	}
}

// TestRecordings plays real clients of torch, where recordings of them are beside the checkout.
func TestRecordings(t *testing.T) { ways(t, recordingsWay) }

func recordingsWay(t *testing.T, at string) {
	for _, file := range wiretest.Recordings(t, "../..") {
		t.Run(filepath.Base(file), func(t *testing.T) { replay(t, at, file, wiretest.Whole) })
	}
}
