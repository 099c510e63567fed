package keys

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tegen-dev/tegen/rendezvous/store"
)

// TestMain runs more tests at once than there are processors, because they wait far more than they compute. Tests that
// measure memory are not parallel, and so run before the others.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == storeRole {
		if err := playStore(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	err := flag.Set("test.parallel", "16")
	code := m.Run()
	if err := errors.Join(err, shared.close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// shared is one etcd for all tests, opened by the first that needs it.
var shared sharedStore

type sharedStore struct {
	once  sync.Once
	dir   string
	store *store.Store
	err   error
}

// open makes a directory that outlives the test.
func (s *sharedStore) open() {
	if s.dir, s.err = os.MkdirTemp("", "tegen-keys-"); s.err == nil {
		s.store, s.err = store.Embedded{Dir: s.dir}.Open(context.Background())
	}
}

func (s *sharedStore) close() error {
	if s.store == nil {
		return nil
	}
	return errors.Join(s.store.Close(), os.RemoveAll(s.dir))
}

// embedded is the shared store, of which open gives each test a part. Its revisions have gaps.
func embedded(t testing.TB) *store.Store {
	t.Helper()
	shared.once.Do(shared.open)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.store
}

// prefixes are those of tests: one that runs again (-count) must not meet what it has left.
var prefixes struct {
	of sync.Map // by test
	n  atomic.Int64
}

// prefix begins the keys of a test in the store.
func prefix(t testing.TB) string {
	if p, ok := prefixes.of.Load(t); ok {
		return p.(string)
	}
	p, _ := prefixes.of.LoadOrStore(t, fmt.Sprintf("/%s.%d/", t.Name(), prefixes.n.Add(1)))
	return p.(string)
}

// gapless is a store of its own, in which revisions follow each other.
func gapless(t testing.TB) *store.Store {
	t.Helper()
	s := embeddedIn(t, t.TempDir())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func embeddedIn(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := store.Embedded{Dir: dir}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
