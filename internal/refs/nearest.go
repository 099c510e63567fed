package refs

import "strings"

// nearest returns the name that the missing one most likely became, or "".
// A name with something put before or after it comes first: that is what
// namePrefix and nameSuffix do. Then a slip of the pen, then a cut name.
func nearest(missing string, names []string) string {
	best, bestRank := "", 0
	for _, name := range names {
		rank := nearness(missing, name)
		if rank > 0 && (best == "" || rank < bestRank || rank == bestRank && name < best) {
			best, bestRank = name, rank
		}
	}
	return best
}

// nearness is lower for nearer names and 0 for those not near at all.
func nearness(missing, name string) int {
	const slip, cut = 1000, 2000 // above any difference of lengths
	switch {
	case extends(name, missing):
		return len(name) - len(missing)
	case len(missing) > 3 && within(missing, name, 2):
		return slip
	case extends(missing, name):
		return cut + len(missing) - len(name)
	}
	return 0
}

// extends reports whether long is short with words put before or after it.
func extends(long, short string) bool {
	return short != "" && (strings.HasSuffix(long, "-"+short) || strings.HasPrefix(long, short+"-"))
}

// within reports whether that many edits (insert, drop, replace) turn a into b. It
// tries them at the first difference, so it costs little more than a comparison.
func within(a, b string, edits int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" {
		return len(a)+len(b) <= edits
	}
	return edits > 0 && (within(a[1:], b[1:], edits-1) || within(a[1:], b, edits-1) || within(a, b[1:], edits-1))
}
