package yamldoc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JoinSurrogates gives a stream whose documents are JSON with each character as itself that JSON writes as two escapes,
// such as \ud83d\ude00, since YAML knows no such pairs. Everything else stays, the text of other documents too: there
// the same letters may be no escape. A program that escapes all that is not ASCII writes such JSON.
func JoinSurrogates(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	var out []byte
	for _, doc := range Split("", data) {
		if bytes.HasPrefix(bytes.TrimLeft(doc.Text, " \t\r\n-"), []byte("{")) && json.Valid(content(doc.Text)) {
			out = appendJoined(out, doc.Text)
		} else {
			out = append(out, doc.Text...)
		}
	}
	return out
}

// content is a document without the marker above it.
func content(text []byte) []byte {
	if line, rest, ok := bytes.Cut(bytes.TrimLeft(text, " \t\r\n"), []byte("\n")); ok &&
		string(bytes.TrimSpace(line)) == "---" {
		return rest
	}
	return text
}

// appendJoined adds JSON to out, the pairs in it joined.
func appendJoined(out, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return append(out, text...)
		}
		out, text = append(out, text[:i]...), text[i:]
		if r, ok := pair(text); ok {
			out, text = utf8.AppendRune(out, r), text[2*len(`\ud83d`):]
			continue
		}
		out, text = append(out, text[:2]...), text[2:] // a backslash after a backslash starts nothing
	}
}

// pair reads the two escapes at the head of JSON's text.
func pair(text []byte) (rune, bool) {
	const size = len(`\ud83d`)
	if len(text) < 2*size || text[1] != 'u' || text[size] != '\\' || text[size+1] != 'u' {
		return 0, false
	}
	high, _ := strconv.ParseUint(string(text[2:size]), 16, 16) // JSON's escapes are four digits
	low, _ := strconv.ParseUint(string(text[size+2:2*size]), 16, 16)
	r := utf16.DecodeRune(rune(high), rune(low))
	return r, r != utf8.RuneError
}
