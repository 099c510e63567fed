package meaning

import (
	"regexp"
	"slices"
	"strings"
)

// Fill puts a value that somebody would choose in the place of each placeholder of a manifest, by the field or the
// option that it stands in and by its own name: whoever imports a template fills it in first. What only a shell or a
// container's environment has is no placeholder. Tags of images and names for generateName are filled in too. Text with
// the control structures of a template, such as {{ if }}, stays as it is.
func Fill(text string) string {
	values := map[string]string{}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		m := keyed.FindStringSubmatch(line)
		if m == nil || inBlock(lines, i) {
			continue
		}
		key, value := m[2], m[3]
		if amountKey.MatchString(key) && strings.Trim(value, " \"'") == "" && !strings.Contains(value, "#") &&
			!continues(lines, i) {
			lines[i] = line + " " + byName(key, "")
			continue
		}
		if key == "value" || key == "" {
			option, _, _ := strings.Cut(strings.Trim(value, `"' `), "=")
			key = strings.TrimLeft(option, "-")
		}
		if m[2] == "image" && hole.MatchString(value) {
			lines[i] = m[1] + m[2] + ": registry.example/team/train:v1"
			continue
		}
		for _, found := range hole.FindAllString(value, -1) {
			if values[found] == "" && !strings.HasPrefix(found, "$(") {
				values[found] = byName(key, found)
			}
		}
	}
	text = strings.Join(lines, "\n")
	for _, found := range sortedByLength(values) {
		text = strings.ReplaceAll(text, found, values[found])
	}
	text = bare.ReplaceAllStringFunc(text, func(word string) string { return "train" })
	text = generated.ReplaceAllString(text, "${1}name: $2")
	return imageLine.ReplaceAllStringFunc(text, func(line string) string {
		m := imageLine.FindStringSubmatch(line)
		image := m[2]
		if name := image[strings.LastIndex(image, "/")+1:]; strings.ContainsAny(image, "$@<{") ||
			strings.Contains(name, ":") && !strings.HasSuffix(name, ":latest") {
			return line
		}
		return m[1] + strings.TrimSuffix(image, ":latest") + ":v1"
	})
}

var (
	keyed = regexp.MustCompile(`^(\s*(?:- )*)(?:"?([A-Za-z0-9_./-]+)"?:|-)(?:\s+(.*)|)$`)
	hole  = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*|` +
		`<[A-Za-z][A-Za-z0-9 _./:-]*>|\{\{-? *\.[^{}]*\}\}|__[A-Z][A-Z0-9_]*__`)
	bare      = regexp.MustCompile(`\b(PLACEHOLDER|CHANGE_?ME|REPLACE_?ME|YOUR_[A-Z_]+)\b`)
	amountKey = regexp.MustCompile(`^(replicas|parallelism|completions|slotsPerWorker|[a-z.]+/(gpu|efa|tpu|neuron))$`)
	imageLine = regexp.MustCompile(`(?m)^(\s*(?:- )?"?image"?: *["']?)([^\s"'#]+)`)
	generated = regexp.MustCompile(`(?m)^(\s*)generateName: *(.*?)-? *$`)
	number    = regexp.MustCompile(`(?i)(^|[ _./-])(num|count|nodes|nnodes|replicas|parallelism|completions|np|` +
		`size|nproc|per|gpus?|gpu_per_node|efa|rank|port|steps|epochs|batch|slots|threads|workers|processes|` +
		`minmember|minavailable|maxreplicas|minreplicas)([ _./-]|$)`)
)

// byName is a value for a key and for the name of what is to be put there.
func byName(key, name string) string {
	both := strings.ToLower(key + " " + name)
	switch {
	case strings.Contains(both, "efa") && number.MatchString(both):
		return "4"
	case strings.Contains(both, "gpu") && (number.MatchString(key) || number.MatchString(strings.Trim(name, "${}<>"))),
		strings.Contains(both, "nproc"), strings.Contains(both, "per_node"), strings.Contains(both, "slots"):
		return "8"
	case strings.Contains(both, "port"):
		return "29500"
	case strings.Contains(both, "memory"):
		return "64Gi"
	case strings.Contains(both, "cpu"):
		return "8"
	case number.MatchString(key), number.MatchString(strings.Trim(name, "${}<>")), strings.HasSuffix(key, "eplicas"):
		return "2"
	case strings.Contains(both, "endpoint"):
		return "etcd.infra.svc"
	case strings.Contains(both, "image"):
		return "registry.example/team/train:v1"
	}
	return "team-value"
}

// inBlock says whether a line is in a block of text, which a shell or another program reads.
func inBlock(lines []string, i int) bool {
	depth := indent(lines[i])
	for j := i - 1; j >= 0; j-- {
		if strings.TrimSpace(lines[j]) == "" || indent(lines[j]) >= depth {
			continue
		}
		depth = indent(lines[j])
		if block.MatchString(lines[j]) {
			return true
		}
		if depth == 0 {
			return false
		}
	}
	return false
}

var block = regexp.MustCompile(`(:|-)\s+[|>][0-9+-]*\s*(#.*)?$`)

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// continues says whether the value of a key is on the lines below.
func continues(lines []string, i int) bool {
	for _, next := range lines[i+1:] {
		if strings.TrimSpace(next) != "" {
			return indent(next) > indent(lines[i])
		}
	}
	return false
}

func sortedByLength(values map[string]string) []string {
	var out []string
	for key := range values {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return out
}
