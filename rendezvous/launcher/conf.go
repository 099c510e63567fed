package launcher

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// conf is what --rdzv-conf says.
type conf struct {
	join, lastCall, barrier, ttl, readTimeout time.Duration
	prefix, protocol, cacert, cert, key       string
	user, password                            string
	apart                                     bool // its loss, and others', are left to leases
}

// settings are its keys: torch's of the etcd backend, and ours.
var settings = []struct {
	names []string // the first is ours, the others are synonyms
	set   func(*conf, string) error
}{
	{[]string{"join_timeout", "timeout"}, duration(func(c *conf) *time.Duration { return &c.join })},
	{[]string{"last_call_timeout"}, duration(func(c *conf) *time.Duration { return &c.lastCall })},
	{[]string{"exit_barrier_timeout"}, duration(func(c *conf) *time.Duration { return &c.barrier })},
	{[]string{"ttl"}, duration(func(c *conf) *time.Duration { return &c.ttl })},
	{[]string{"read_timeout"}, duration(func(c *conf) *time.Duration { return &c.readTimeout })},
	{[]string{"prefix", "etcd_prefix"}, stringValue(func(c *conf) *string { return &c.prefix })},
	{[]string{"protocol"}, func(c *conf, value string) error {
		if value != "http" && value != "https" {
			return fmt.Errorf("%q is neither http nor https", value)
		}
		c.protocol = value
		return nil
	}},
	{[]string{"cacert"}, stringValue(func(c *conf) *string { return &c.cacert })},
	{[]string{"cert"}, stringValue(func(c *conf) *string { return &c.cert })},
	{[]string{"key"}, stringValue(func(c *conf) *string { return &c.key })},
	{[]string{"neighbours"}, func(c *conf, value string) error {
		if value != "true" && value != "false" {
			return fmt.Errorf("%q is neither true nor false", value)
		}
		c.apart = value == "false"
		return nil
	}},
	{[]string{"user"}, stringValue(func(c *conf) *string { return &c.user })},
	{[]string{"password"}, stringValue(func(c *conf) *string { return &c.password })},
}

func duration(field func(*conf) *time.Duration) func(*conf, string) error {
	return func(c *conf, value string) (err error) {
		*field(c), err = parseSeconds(value)
		return err
	}
}

func stringValue(field func(*conf) *string) func(*conf, string) error {
	return func(c *conf, value string) error {
		*field(c) = value
		return nil
	}
}

// confKeys names all keys.
func confKeys() string {
	var all []string
	for _, s := range settings {
		all = append(all, s.names...)
	}
	return strings.Join(all, ", ")
}

func parseConf(text string) (conf, error) {
	c := conf{join: 600 * time.Second, lastCall: 30 * time.Second, barrier: 300 * time.Second} // torch's
	var errs []error
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			if strings.Contains(text, "password") { // of which this may be a part
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

func (c *conf) set(key, value string) error {
	for _, s := range settings {
		for _, name := range s.names {
			if name == key {
				if err := s.set(c, value); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
				return nil
			}
		}
	}
	return fmt.Errorf("unknown key %q; there are %s", key, confKeys())
}
