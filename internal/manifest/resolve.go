package manifest

import "strings"

// resolves says whether some YAML parser reads the plain scalar s as other
// than a string. Where versions differ it takes them all: 1.1 has yes, 010,
// 12:30 and 1_000; 1.2 has 0o7 and 1e3.
func resolves(s string) bool {
	return isWord(s) || isNumber(s) || isDate(s)
}

const longestWord = 5 // bytes, of those that isWord knows

// isWord folds case, so it quotes a few spellings no parser knows, like nULL.
func isWord(s string) bool {
	var fold [longestWord]byte
	if len(s) > len(fold) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		fold[i] = c
	}
	switch string(fold[:len(s)]) {
	case "null", "~", "true", "false", "yes", "no", "y", "n", "on", "off",
		".inf", "+.inf", "-.inf", ".nan", "<<", "=":
		return true
	}
	return false
}

// isNumber knows integers of every base, floats, and YAML 1.1's base 60.
func isNumber(s string) bool {
	if c := s[0]; !isDigit(c) && c != '+' && c != '-' && c != '.' {
		return false
	}
	// Parsers differ in where they let underscores stand; go-yaml, anywhere.
	if strings.IndexByte(s, '_') >= 0 {
		s = strings.ReplaceAll(s, "_", "")
	}
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	if len(s) > 2 && s[0] == '0' {
		switch s[1] {
		case 'x', 'X', 'o', 'O', 'b', 'B':
			// go-yaml takes a sign after the prefix too: it reads 0o+2 as 2.
			return len(strings.Trim(s[2:], "+-0123456789abcdefABCDEF")) == 0
		}
	}
	whole := span(s, ':')
	n := whole
	if n < len(s) && s[n] == '.' {
		n++
		n += span(s[n:], '0')
	}
	if n == 0 || whole == 0 && n == 1 {
		return false
	}
	if n+1 < len(s) && (s[n] == 'e' || s[n] == 'E') {
		exp := s[n+1:]
		if exp[0] == '+' || exp[0] == '-' {
			exp = exp[1:]
		}
		return len(exp) > 0 && span(exp, '0') == len(exp)
	}
	return n == len(s)
}

// span counts the leading bytes of s that are digits or the byte also.
func span(s string, also byte) int {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && c != also {
			return i
		}
	}
	return len(s)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isDate knows 2001-1-2, alone or with a time of day after it.
func isDate(s string) bool {
	if span(s, '0') != 4 || len(s) < 8 {
		return false
	}
	rest := s[4:]
	for range 2 {
		if len(rest) < 2 || rest[0] != '-' {
			return false
		}
		n := span(rest[1:], '0')
		if n != 1 && n != 2 {
			return false
		}
		rest = rest[1+n:]
	}
	return len(rest) == 0 || rest[0] == 'T' || rest[0] == 't' || rest[0] == ' '
}
