package store

import (
	"errors"
	"net"
	"strings"
	"testing"
)

// TestEmbedded: what was written is there after a restart.
func TestEmbedded(t *testing.T) {
	dir := t.TempDir()
	for i, want := range []int{0, 1} {
		s, err := Embedded{Dir: dir}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(t.Context(), "k")
		if err != nil || len(r.Kvs) != want {
			t.Errorf("start %d: %d keys, %v", i, len(r.Kvs), err)
		}
		if _, err := s.Put(t.Context(), "k", "v"); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestListen: other processes reach a server that listens.
func TestListen(t *testing.T) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := port.Addr().String()
	if err := port.Close(); err != nil {
		t.Fatal(err)
	}
	server, err := Embedded{Dir: t.TempDir(), Listen: address}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := External{Endpoints: []string{address}}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := client.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
}

// TestExternal: a server that is not there is an error, and names where it was looked for.
func TestExternal(t *testing.T) {
	if _, err := (External{Endpoints: []string{"127.0.0.1:1"}}).Open(t.Context()); err == nil {
		t.Error("it connects to nothing")
	}
}

// TestRefused: credentials that a cluster does not take are an error that says so, and not one to try again after.
func TestRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	server, err := Embedded{Dir: t.TempDir(), Listen: address}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []func() error{
		func() error { _, err := server.RoleAdd(t.Context(), "root"); return err },
		func() error { _, err := server.UserAdd(t.Context(), "root", "right"); return err },
		func() error { _, err := server.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := server.AuthEnable(t.Context()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	_, err = External{Endpoints: []string{address}, Username: "root", Password: "wrong"}.Open(t.Context())
	if !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong password: %v", err)
	}
	right, err := External{Endpoints: []string{address}, Username: "root", Password: "right"}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := right.Close(); err != nil {
		t.Error(err)
	}
}
