package agent

import (
	"fmt"
	"strconv"
	"strings"
)

// stream is standard output, standard error, or both, in torchrun's numbers.
type stream int

const (
	streamOut stream = 1 << iota
	streamErr
)

// Streams selects streams by worker.
type Streams struct {
	all   stream
	local map[int]stream
}

// ParseStreams reads torchrun's --redirects and --tee: 0 none, 1 standard output, 2 standard error, 3 both; one number
// for all workers, or local:number pairs after commas.
func ParseStreams(text string) (Streams, error) {
	if n, err := parseStream(text); err == nil {
		return Streams{all: n}, nil
	}
	s := Streams{local: map[int]stream{}}
	for pair := range strings.SplitSeq(text, ",") {
		rank, value, ok := strings.Cut(strings.TrimSpace(pair), ":")
		local, err := strconv.Atoi(rank)
		n, nErr := parseStream(value)
		if !ok || err != nil || local < 0 || nErr != nil {
			return s, fmt.Errorf("%q is neither 0, 1, 2 or 3 nor pairs like 0:3,1:2", text)
		}
		s.local[local] = n
	}
	return s, nil
}

func parseStream(text string) (stream, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 || n > 3 {
		return 0, fmt.Errorf("%q is not 0, 1, 2 or 3", text)
	}
	return stream(n), nil
}

func (s Streams) has(local int, which stream) bool { return (s.all|s.local[local])&which != 0 }

func (s Streams) none() bool { return s.all == 0 && len(s.local) == 0 }
