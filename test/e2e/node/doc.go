// Package node proves with running containers that what tegen renders trains: what fixtures render to goes to a cluster
// with real nodes by kubectl apply, unchanged, and what counts is what the training says of itself on its standard
// output: a sum over all ranks, and a step counter that goes on from the checkpoint. How long things took is printed as
// a table, and evaluated by nobody.
//
// The cluster is a lab, which test/node makes of one Linux machine; the tests are skipped where there is none. A
// scenario is a file with a test, which calls begin, prepares a job with world.job, applies it, and waits for events
// of its pods.
package node
