package keys

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tegen-dev/tegen/rendezvous/store"
)

// storeRole as its first argument makes this program the process of a store, whose id it writes to a file beside the
// store's directory.
const storeRole = "store-of-keys"

func playStore() error {
	dir := os.Args[2]
	if err := os.WriteFile(dir+".pid", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	return store.Main(store.Embedded{Dir: dir, Listen: os.Args[3]}, os.Stdin, os.Stdout)
}

// query is an operation: a read, or a swap of what is expected for something that nobody else writes.
type query struct{ key, expected, value string }

// outcome is what came of it: a swap was refused for what there is, or nobody knows.
type outcome struct {
	value            string
	refused, unknown bool
}

// register is a key that is always there. Of each operation it is known what came of it.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		at := map[string]int{}
		for _, o := range history {
			key := o.Input.(query).key
			i, ok := at[key]
			if !ok {
				i = len(parts)
				at[key], parts = i, append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() any { return "0" },
	Step: func(state, in, out any) (bool, any) {
		now, q, a := state.(string), in.(query), out.(outcome)
		switch {
		case q.value == "":
			return a.value == now, now
		case a.refused:
			return a.value == now && now != q.expected, now
		}
		return now == q.expected, q.value
	},
}

// do asks, and returns what is known of it. What nobody knows may happen at any time.
func (q query) do(ctx context.Context, k *Keys, client int, began time.Time) porcupine.Operation {
	o := porcupine.Operation{ClientId: client, Input: q, Call: time.Since(began).Nanoseconds()}
	var a outcome
	var e *Event
	var err error
	if q.value == "" {
		e, err = k.Get(ctx, q.key, false)
	} else {
		e, err = k.Put(ctx, q.key, Put{Value: q.value, PrevValue: q.expected})
	}
	o.Return = time.Since(began).Nanoseconds()
	switch {
	case err == nil:
		a.value = *e.Node.Value
	case refused(err) == CodeCompare:
		a.refused = true
		_, a.value, _ = strings.Cut(err.Error(), " != ")
		a.value, _, _ = strings.Cut(a.value, "]")
	default:
		a.unknown, o.Return = true, math.MaxInt64
	}
	o.Output = a
	return o
}

// TestLinearizable: while the store's process is killed again and again, swaps and reads of several clients come to
// what they would at one copy of each key, by one process that has the store alone and by two that share it.
// TEGEN_FAULTS is how long, TEGEN_SEED the seed.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	for name, o := range map[string][]Options{
		"alone": {{Alone: true, Timeout: time.Second}},
		"two":   {{Timeout: time.Second}, {Timeout: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linearize(t, o)
		})
	}
}

func linearize(t *testing.T, options []Options) {
	length, err := time.ParseDuration(orElse(os.Getenv("TEGEN_FAULTS"), "3s"))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := strconv.ParseUint(orElse(os.Getenv("TEGEN_SEED"), fmt.Sprint(time.Now().UnixNano())), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d", seed)
	dir := filepath.Join(t.TempDir(), "store")
	s := processIn(t, dir)
	var all []*Keys
	for _, o := range options {
		k, err := Open(soon(t), s.Client, o)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		all = append(all, k)
	}
	const keys, clients = 4, 12
	for key := range keys {
		put(t, all[0], fmt.Sprint("/run_x/", key), Put{Value: "0"})
	}
	ctx, end := context.WithTimeout(t.Context(), length)
	defer end()
	began := time.Now()
	histories := make([][]porcupine.Operation, clients)
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(c)))
			seen := map[string]string{}
			for n := 1; ctx.Err() == nil; n++ {
				q := query{key: fmt.Sprint("/run_x/", dice.IntN(keys))}
				if seen[q.key] != "" && dice.IntN(4) > 0 {
					q.expected, q.value = seen[q.key], fmt.Sprint(c, ".", n)
				}
				o := q.do(t.Context(), all[c%len(all)], c, began)
				if a := o.Output.(outcome); !a.unknown {
					seen[q.key] = a.value
				}
				histories[c] = append(histories[c], o)
				time.Sleep(time.Duration(dice.IntN(3)) * time.Millisecond)
			}
		})
	}
	kills := killAgain(ctx, t, dir+".pid", rand.New(rand.NewPCG(seed, 1000)))
	running.Wait()
	for ctx := soon(t); ; time.Sleep(10 * time.Millisecond) {
		if _, err = all[0].Put(ctx, "/run_x/after", Put{}); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("after the last of %d kills nothing can be written: %v", kills, err)
		}
	}
	var history []porcupine.Operation
	unknown, swapped := 0, 0
	for _, h := range histories {
		for _, o := range h {
			a, q := o.Output.(outcome), o.Input.(query)
			if a.unknown {
				unknown++
			} else if q.value != "" && !a.refused {
				swapped++
			}
		}
		history = append(history, h...)
	}
	t.Logf("%d operations, %d of them swaps that happened, %d of which nobody knows; %d kills", len(history), swapped,
		unknown, kills)
	switch porcupine.CheckOperationsTimeout(register, happened(history), time.Minute) {
	case porcupine.Illegal:
		t.Errorf("the %d operations are not those of one store", len(history))
	case porcupine.Unknown:
		t.Skipf("nothing is said of the %d operations: not all orders were looked at within a minute", len(history))
	case porcupine.Ok:
	}
}

// happened is a history without what nobody knows, whose many orders cannot all be looked at. A swap whose value
// somebody saw has happened, at the latest when the first of them was answered. One whose value nobody saw is left out:
// either it has not happened or it was the last of its key.
func happened(history []porcupine.Operation) (out []porcupine.Operation) {
	saw := map[string]int64{} // when a value was first known
	for _, o := range history {
		if a := o.Output.(outcome); !a.unknown {
			if at, ok := saw[a.value]; !ok || o.Return < at {
				saw[a.value] = o.Return
			}
		}
	}
	for _, o := range history {
		if o.Output.(outcome).unknown {
			value := o.Input.(query).value
			at, ok := saw[value]
			if !ok {
				continue
			}
			o.Return, o.Output = max(at, o.Call+1), outcome{value: value}
		}
		out = append(out, o)
	}
	return out
}

// TestHappened: what nobody knows of has happened where its value was seen, and a history in which that cannot be is
// recognized.
func TestHappened(t *testing.T) {
	t.Parallel()
	swap := func(call, end int64, from, to string, o outcome) porcupine.Operation {
		return porcupine.Operation{Input: query{"k", from, to}, Call: call, Return: end, Output: o}
	}
	read := func(call, end int64, value string) porcupine.Operation {
		return swap(call, end, "", "", outcome{value: value})
	}
	unknown := outcome{unknown: true}
	for name, c := range map[string]struct {
		history []porcupine.Operation
		left    int
		want    bool
	}{
		"not seen":      {[]porcupine.Operation{swap(1, math.MaxInt64, "0", "a", unknown), read(2, 3, "0")}, 1, true},
		"a read nobody": {[]porcupine.Operation{swap(1, math.MaxInt64, "", "", unknown), read(2, 3, "0")}, 1, true},
		"seen late": {[]porcupine.Operation{
			swap(1, math.MaxInt64, "0", "a", unknown), read(2, 3, "0"), read(4, 5, "a"), read(6, 7, "a"),
		}, 4, true},
		"lost again": {[]porcupine.Operation{
			swap(1, math.MaxInt64, "0", "a", unknown), read(2, 3, "a"), read(4, 5, "0"),
		}, 3, false},
		"seen before": {[]porcupine.Operation{read(1, 2, "a"), swap(3, math.MaxInt64, "0", "a", unknown)}, 2, false},
		"both": {[]porcupine.Operation{
			swap(1, math.MaxInt64, "0", "a", unknown), swap(2, 3, "0", "b", outcome{value: "b"}), read(4, 5, "a"),
		}, 3, false},
	} {
		got := happened(c.history)
		if ok := porcupine.CheckOperations(register, got); ok != c.want || len(got) != c.left {
			t.Errorf("%s: %d operations are left, and are those of one store: %v", name, len(got), ok)
		}
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// killAgain kills the process of a file again and again, until the context ends.
func killAgain(ctx context.Context, t *testing.T, file string, dice *rand.Rand) (kills int) {
	t.Helper()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return kills
		case <-time.After(time.Duration(200+dice.IntN(1500)) * time.Millisecond):
		}
		text, err := os.ReadFile(file)
		if err != nil || string(text) == last { // it has not begun again
			continue
		}
		last = string(text)
		pid, err := strconv.Atoi(last)
		if err != nil {
			continue // it is being written
		}
		p, err := os.FindProcess(pid)
		if err != nil {
			t.Error(err)
			return kills
		}
		_ = p.Kill() // it may have ended
		kills++
	}
}

// processIn is a store in a process of its own.
func processIn(t *testing.T, dir string) *store.Store {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Process{Dir: dir, Command: []string{exe, storeRole}}.Open(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
