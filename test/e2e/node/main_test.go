package node

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/tegen-dev/tegen/test/slice"
)

// atOnce is how many scenarios run side by side. They wait most of the time; where more of them start at once, two
// cores import torch thirty times, and what is measured is that.
const atOnce = 3

// times is what all scenarios measured.
var times table

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", fmt.Sprint(atOnce)); err != nil {
		panic(err)
	}
	flag.Parse()
	code := m.Run()
	if err := times.publish(os.Stdout, os.Getenv("TEGEN_NODE_TABLE")); err != nil {
		fmt.Fprintln(os.Stderr, "publishing the table:", err)
		code = 1
	}
	os.Exit(code)
}

// shared is the one world of all scenarios.
var shared = sync.OnceValues(func() (*world, error) {
	l, err := connect()
	if l == nil || err != nil {
		return nil, err
	}
	return newWorld(l)
})

// scenarios are all except the one that is in each run. Those that need the most programs and time are far from each
// other, since their places in the list decide which slice they are in.
var scenarios = []string{
	"TestJobSet", "TestNodeLoss", "TestTutorial", "TestGang", "TestCompanionEtcd",
	"TestPyTorchJob", "TestMXNet", "TestHorovod", "TestByteScheduler", "TestMPIRun",
	"TestTrainJob", "TestWorker0", "TestCompanionC10d", "TestProxyNodeLoss", "TestProxy",
	"TestImported", "TestSharedRendezvous", "TestStart", "TestRunbook", "TestMPIJob", "TestMPIJobHorovod",
}

// begin skips a scenario where there is no lab, lets it run beside the others otherwise, and gives it the world.
func begin(t *testing.T) *world {
	t.Helper()
	w, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	if w == nil {
		t.Skip("runs containers on a real node: run make e2e-node")
	}
	if t.Name() != "TestSuspend" { // this one is in each run
		i := slices.Index(scenarios, t.Name())
		if i < 0 {
			t.Fatal("add the scenario to the list of scenarios")
		}
		slice.Skip(t, i)
	}
	t.Parallel()
	return w
}
