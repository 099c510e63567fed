package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// rdzvConf is what --rdzv-conf says.
type rdzvConf struct {
	join, lastCall, barrier, ttl, readTimeout time.Duration
	prefix, protocol, cacert, cert, key       string
	user, password                            string
}

// rdzvSettings are its keys: torch's of the etcd backend, and some of ours.
var rdzvSettings = []struct {
	names []string // the first is ours, others are taken as well
	set   func(*rdzvConf, string) error
}{
	{[]string{"join_timeout", "timeout"}, timed(func(c *rdzvConf) *time.Duration { return &c.join })},
	{[]string{"last_call_timeout"}, timed(func(c *rdzvConf) *time.Duration { return &c.lastCall })},
	{[]string{"exit_barrier_timeout"}, timed(func(c *rdzvConf) *time.Duration { return &c.barrier })},
	{[]string{"ttl"}, timed(func(c *rdzvConf) *time.Duration { return &c.ttl })},
	{[]string{"read_timeout"}, timed(func(c *rdzvConf) *time.Duration { return &c.readTimeout })},
	{[]string{"prefix", "etcd_prefix"}, text(func(c *rdzvConf) *string { return &c.prefix })},
	{[]string{"protocol"}, func(c *rdzvConf, value string) error {
		if value != "http" && value != "https" {
			return fmt.Errorf("%q is neither http nor https", value)
		}
		c.protocol = value
		return nil
	}},
	{[]string{"cacert"}, text(func(c *rdzvConf) *string { return &c.cacert })},
	{[]string{"cert"}, text(func(c *rdzvConf) *string { return &c.cert })},
	{[]string{"key"}, text(func(c *rdzvConf) *string { return &c.key })},
	{[]string{"user"}, text(func(c *rdzvConf) *string { return &c.user })},
	{[]string{"password"}, text(func(c *rdzvConf) *string { return &c.password })},
}

func timed(field func(*rdzvConf) *time.Duration) func(*rdzvConf, string) error {
	return func(c *rdzvConf, value string) (err error) {
		*field(c), err = parseSeconds(value)
		return err
	}
}

func text(field func(*rdzvConf) *string) func(*rdzvConf, string) error {
	return func(c *rdzvConf, value string) error {
		*field(c) = value
		return nil
	}
}

// rdzvKeys names all keys.
func rdzvKeys() string {
	var all []string
	for _, s := range rdzvSettings {
		all = append(all, s.names...)
	}
	return strings.Join(all, ", ")
}

func parseRdzvConf(given string) (rdzvConf, error) {
	c := rdzvConf{join: 600 * time.Second, lastCall: 30 * time.Second, barrier: 300 * time.Second} // torch's
	var errs []error
	for pair := range strings.SplitSeq(given, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			if strings.Contains(given, "password") { // of which this may be a part
				pair = "..."
			}
			errs = append(errs, fmt.Errorf("%q is not key=value; a value cannot hold a comma", pair))
			continue
		}
		if err := c.set(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			errs = append(errs, err)
		}
	}
	if (c.cert == "") != (c.key == "") {
		errs = append(errs, errors.New("cert and key belong together"))
	}
	return c, errors.Join(errs...)
}

func (c *rdzvConf) set(key, value string) error {
	for _, s := range rdzvSettings {
		for _, name := range s.names {
			if name == key {
				if err := s.set(c, value); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
				return nil
			}
		}
	}
	return fmt.Errorf("unknown key %q; there are %s", key, rdzvKeys())
}
