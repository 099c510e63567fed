package launcher

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// seconds is a flag's time: a number of seconds as torchrun has it, or with a unit as Go has it.
type seconds struct{ time.Duration }

func (s *seconds) Set(text string) (err error) {
	s.Duration, err = parseSeconds(text)
	return err
}

func (s *seconds) String() string { return strconv.FormatFloat(s.Seconds(), 'g', -1, 64) }
func (s *seconds) Type() string   { return "seconds" }

func parseSeconds(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if n, numErr := strconv.ParseFloat(text, 64); numErr == nil && n < 1e9 { // 30 years
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a time in seconds", text)
	}
	return d, nil
}

func parseNodes(text string) (least, most int, err error) {
	lo, hi, ranged := strings.Cut(text, ":")
	if !ranged {
		hi = lo
	}
	least, err = strconv.Atoi(lo)
	if err == nil {
		most, err = strconv.Atoi(hi)
	}
	if err != nil || least < 1 || most < least {
		return 0, 0, fmt.Errorf("%q is neither a number of machines nor min:max, with 1 ≤ min ≤ max", text)
	}
	return least, most, nil
}

func parseRanks(text string) (ranks []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not local ranks like 0,1", text)
		}
		ranks = append(ranks, n)
	}
	return ranks, nil
}

var signalNumbers = map[string]syscall.Signal{
	"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGUSR1": usr1, "SIGUSR2": usr2, "SIGALRM": 14, "SIGTERM": 15,
}

func parseSignals(text string) (all []os.Signal, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, ok := signalNumbers[strings.ToUpper(strings.TrimSpace(part))]
		if !ok {
			return nil, fmt.Errorf("%q is none of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM", part)
		}
		all = append(all, n)
	}
	return all, nil
}
