package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// offering is a ResourceSlice of node a with some devices.
func offering(devices string) string {
	return fmt.Sprintf("{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: a}, spec: {driver: "+
		"gpu.example.com, nodeName: a, pool: {name: a, generation: 1, resourceSliceCount: 1}, devices: [%s]}}", devices)
}

// offeringTwice is one of two slices of its pool.
func offeringTwice(devices string) string {
	return strings.Replace(offering(devices), "resourceSliceCount: 1", "resourceSliceCount: 2", 1)
}

// claiming is the template of the claims that the pods of fitting have.
func claiming(devices string) string {
	return "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: fabric, namespace: ml}, " +
		"spec: {spec: {devices: " + devices + "}}}"
}

// requesting is a template of claims with one request of the class gpu.example.com.
func requesting(more string) string {
	return claiming("{requests: [{name: r, exactly: {deviceClassName: gpu.example.com" + more + "}}]}")
}

func selecting(t *testing.T, expression string) string {
	t.Helper()
	text, err := json.Marshal(expression)
	if err != nil {
		t.Fatal(err)
	}
	return ", selectors: [{cel: {expression: " + string(text) + "}}]"
}

// beta is an object of an earlier version.
func beta(version, object string) string { return strings.Replace(object, "/v1,", "/"+version+",", 1) }

// fitting is how many pods with claims of a template node a has devices for, and the notes.
func fitting(t *testing.T, template string, objects ...string) (int64, string) {
	t.Helper()
	p := New([]*Job{of(t, "resources: {cpu: 1m, memory: 1Mi, claims: [fabric]}, workers: {replicas: 1}")})
	read := inventory(t, append([]string{cpuNode("a"), gpuClass, template}, objects...)...)
	claims := read.devices.claimsOf(p.Jobs[0].PodSets[0].pod, nil)
	count, _ := read.devices.room(read.nodes[0].Node, claims.own, 9)
	return count, strings.Join(claims.notes, "; ")
}

// refusal is why node a has no devices for a pod with claims of a template.
func refusal(t *testing.T, template string, objects ...string) string {
	t.Helper()
	p := New([]*Job{of(t, "resources: {cpu: 1m, memory: 1Mi, claims: [fabric]}, workers: {replicas: 1}")})
	read := inventory(t, append([]string{cpuNode("a"), gpuClass, template}, objects...)...)
	claims := read.devices.claimsOf(p.Jobs[0].PodSets[0].pod, nil)
	count, why := read.devices.room(read.nodes[0].Node, claims.own, 9)
	if count > 0 || len(claims.notes) > 0 {
		t.Errorf("%d pods, want none; notes %q", count, claims.notes)
	}
	return strings.Join(why, "; ")
}

// TestAllocate: what decides about the devices of a claim beside its class.
func TestAllocate(t *testing.T) {
	t.Parallel()
	const (
		all     = ", allocationMode: All"
		tainted = "{name: a, taints: [{key: broken, value: fan, effect: NoExecute}]}"
		three   = "{name: a}, {name: b}, {name: c}"
		apart   = "{name: a, nodeName: a}, {name: b, nodeName: b}, {name: c, allNodes: true}"
		other   = "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, " +
			"operator: In, values: [b]}]}]}"
		part = "{name: %s, consumesCounters: [{counterSet: g, counters: {memory: {value: 15Gi}}}]}, "
	)
	roots := func(each ...string) string {
		var devices []string
		for i, root := range each {
			devices = append(devices,
				fmt.Sprintf("{name: d%d, attributes: {gpu.example.com/root: {string: %s}}}", i, root))
		}
		return offering(strings.Join(devices, ", "))
	}
	both := func(constraint string) string {
		return claiming("{requests: [{name: r, exactly: {deviceClassName: gpu.example.com}}, {name: s, exactly: " +
			"{deviceClassName: gpu.example.com}}], constraints: [{" + constraint + "}]}")
	}
	rooted := selecting(t, "device.attributes['gpu.example.com'].root == 'p'")
	laterChoice := claiming("{requests: [{name: r, exactly: {deviceClassName: gpu.example.com}}, {name: s, exactly: " +
		"{deviceClassName: gpu.example.com" + rooted + "}}]}")
	counters := strings.Replace(offeringTwice(""), "devices: []",
		"sharedCounters: [{name: g, counters: {memory: {value: 40Gi}}}]", 1)
	const consumes = "consumesCounters: [{counterSet: g, counters: {memory: {value: 20Gi}}}], attributes"
	rootedParts := strings.ReplaceAll(roots("p", "q"), "attributes", consumes)
	rootedParts = strings.Replace(rootedParts, "Count: 1", "Count: 2", 1)
	parts := offeringTwice(fmt.Sprintf(part+part+part, "a", "b", "c"))
	for name, c := range map[string]struct {
		template string
		objects  []string
		want     int64
	}{
		"one each":             {requesting(""), []string{offering(three)}, 3},
		"two each":             {requesting(", count: 2"), []string{offering(three)}, 1},
		"v1beta2":              {beta("v1beta2", requesting("")), []string{beta("v1beta2", offering(three))}, 3},
		"a slice is missing":   {requesting(""), []string{offeringTwice(three)}, 0},
		"a generation ends":    {requesting(""), []string{offering(three), newer(offering("{name: d}"))}, 1},
		"bound on a condition": {requesting(""), []string{offering("{name: a, bindingConditions: [ready]}")}, 0},
		"a taint":              {requesting(""), []string{offering(tainted)}, 0},
		"a toleration": {
			requesting(", tolerations: [{key: broken, operator: Exists}]"), []string{offering(tainted)}, 1,
		},
		"a toleration of another value": {
			requesting(", tolerations: [{key: broken, value: pump}]"), []string{offering(tainted)}, 0,
		},
		"all":                   {requesting(all), []string{offering(three)}, 1},
		"all of none":           {requesting(all), nil, 0},
		"all, and one is taken": {requesting(all), []string{slice("a", "gpu.example.com", 2), held("a", 1)}, 0},
		"all of an incomplete pool": {
			requesting(all),
			[]string{offeringTwice(three), strings.Replace(offering(three), "pool: {name: a", "pool: {name: b", 1)},
			0,
		},
		"access of an administrator": {
			requesting(", adminAccess: true"), []string{slice("a", "gpu.example.com", 1), held("a", 0)}, 9,
		},
		"alternatives": {
			claiming("{requests: [{name: r, firstAvailable: [{name: many, deviceClassName: gpu.example.com, " +
				"allocationMode: ExactCount, count: 2}, {name: few, deviceClassName: gpu.example.com, " +
				"allocationMode: ExactCount, count: 1}]}]}"), []string{offering(three)}, 2,
		},
		"one root": {
			both("matchAttribute: gpu.example.com/root"), []string{roots("p", "q", "p", "q", "p")}, 2,
		},
		"a root of one": {
			both("matchAttribute: gpu.example.com/root, requests: [r]"), []string{roots("p", "q")}, 1,
		},
		"no such attribute":              {both("matchAttribute: gpu.example.com/other"), []string{roots("p", "p")}, 0},
		"a choice for the later request": {laterChoice, []string{roots("p", "q")}, 1},
		"a partition for the later request": {
			laterChoice, []string{rootedParts, counters}, 1,
		},
		"partitions": {requesting(""), []string{parts, counters}, 2},
		"partitions of different sizes": {
			requesting(""), []string{strings.Replace(parts, "15Gi", "41Gi", 1), counters}, 2,
		},
		"values of different types": {
			both("matchAttribute: gpu.example.com/root"),
			[]string{strings.Replace(roots("1.0.0", "1.0.1", "1.0.0"), "string: 1.0.1", "version: 1.0.0", 1)},
			1,
		},
		"a partition is taken": {
			requesting(""), []string{parts, counters, strings.Replace(held("a", 2), "gpu-2", "c", 1)}, 1,
		},
		"v1beta1": {
			beta("v1beta1", claiming("{requests: [{name: r, deviceClassName: gpu.example.com"+rooted+"}]}")),
			[]string{beta("v1beta1", offering("{name: a, basic: {attributes: {root: {string: p}}}}, {name: b, basic: "+
				"{attributes: {root: {string: q}}}}"))},
			1,
		},
		"devices of nodes": {
			requesting(""),
			[]string{strings.Replace(offering(apart), "nodeName: a, pool", "perDeviceNodeSelection: true, pool", 1)},
			2,
		},
		"devices of other nodes": {
			requesting(""), []string{strings.Replace(offering(three), "nodeName: a, pool", other+", pool", 1)}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, notes := fitting(t, c.template, c.objects...); got != c.want || notes != "" {
				t.Errorf("%d pods, want %d; notes %s", got, c.want, notes)
			}
		})
	}
}

func newer(slice string) string { return strings.Replace(slice, "generation: 1", "generation: 2", 1) }

// TestSelectors: expressions have the values that they have in CEL.
func TestSelectors(t *testing.T) {
	t.Parallel()
	const device = "{name: a, attributes: {model: {string: H100}, gpu.example.com/cores: {int: 8}, " +
		"smallest: {int: -9223372036854775808}, " +
		"other.example.com/nvlink: {bool: true}, driverVersion: {version: 10.2.0}}, capacity: {memory: {value: 80Gi}}}"
	short := strings.NewReplacer("A.", `device.attributes["gpu.example.com"].`, "C.",
		"device.capacity['gpu.example.com'].", "O.", "device.attributes['other.example.com'].")
	for expression, want := range map[string]bool{
		"device.driver == 'gpu.example.com'":                   true,
		"device.driver != 'gpu.example.com'":                   false,
		`A.model == "H100" && A.cores >= 8`:                    true,
		"!(A.model == 'H100') || O.nvlink":                     true,
		"A.cores < 8 || A.cores > 8":                           false,
		"A.cores == -8":                                        false,
		"-A.cores == -8 && -(-8) == 8":                         true,
		"A.smallest < 1 && !(A.smallest > 1)":                  true,
		"8 > A.smallest && 9223372036854775807 > -2":           true,
		"!!O.nvlink && !(!O.nvlink)":                           true,
		"device.attributes['gpu.example.com']['cores'] <= 8":   true,
		"A.model.lowerAscii().matches('^h[0-9]+$')":            true,
		"A.model.startsWith('H') && A.model.endsWith('00')":    true,
		"A.model.contains('200')":                              false,
		"A.driverVersion.isGreaterThan(semver('9.9.9'))":       true,
		"A.driverVersion == semver('10.2.0')":                  true,
		"A.driverVersion.isLessThan(semver('10.2.0'))":         false,
		"C.memory.isLessThan(quantity('81Gi'))":                true,
		"C.memory.compareTo(quantity('80Gi')) >= 0":            true,
		"has(A.model) && !has(A.other)":                        true,
		"device.driver == 'other' && A.other == 1":             false,
		"A.other == 1 && device.driver == 'other'":             false,
		"A.other == 1 || A.model == 'H100'":                    true,
		"A.other == 1 && A.model == 'H100'":                    false, // an error
		"A.model == 'H100' ||\n A.other == 1":                  true,
		"A.model == 'H\\x3100'":                                true,
		"A.model == 'it\\'s' || A.model == \"it's\"":           false,
		"O.cores == 8 || true":                                 true,
		"A.model < 'H2' && A.model == A.model && A.model != 8": true,
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			count, notes := fitting(t, requesting(selecting(t, short.Replace(expression))), offering(device))
			if (count > 0) != want || notes != "" {
				t.Errorf("%d devices, want %t; notes %s", count, want, notes)
			}
		})
	}
}

// TestUnsupported: a note names what plan does not evaluate, because the scheduler may decide otherwise.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	selector := func(expression, why string) (string, string) {
		return requesting(selecting(t, expression)), "the selector " + expression + " (" + why + ")"
	}
	const syntax = "its syntax is not supported"
	const hasField = "the operand of has must be a field, as in has(device.attributes['d'].name)"
	for _, c := range [][]string{
		pair(selector("'model' in device.attributes['d']", syntax)),
		pair(selector("device.driver == 'a' ? true : false", syntax)),
		pair(selector("device.driver + 'a' == 'b'", "_+_ is not supported")),
		pair(selector("device.driver ==", syntax)),
		pair(selector("device.driver == 'a", "a string in it is not supported")),
		pair(selector("true // always", "comments and strings of several lines are not supported")),
		pair(selector("device.attributes['d'].n == 1.5", "null and numbers with a point are not supported")),
		pair(selector("size(device.driver) == 1", "size(_) is not supported")),
		pair(selector("cel.bind(a, true, a)", "_.bind(_, _, _) is not supported")),
		pair(selector("semver('v1.2', true) == semver('1.2.0')", "semver(_, _) is not supported")),
		pair(selector("quantity('1', true) == quantity('1')", "quantity(_, _) is not supported")),
		pair(selector("device.driver.lowerAscii('a') == 'a'", "_.lowerAscii(_) is not supported")),
		pair(selector("device.driver.startsWith()", "_.startsWith() is not supported")),
		pair(selector("'1'.quantity() == quantity('1')", "_.quantity() is not supported")),
		pair(selector("matches('a', 'b')", "matches(_, _) is not supported")),
		pair(selector("lowerAscii('a') == 'a'", "lowerAscii(_) is not supported")),
		pair(selector("+1 == 1", "+_ is not supported")),
		pair(selector("<1", "<_ is not supported")),
		pair(selector("has(true)", hasField)),
		pair(selector("has(device.driver == 'a')", hasField)),
		pair(selector("has(device.attributes['d']['n'])", hasField)),
		pair(selector("has(device.allowMultipleAllocations)",
			"only driver, attributes and capacity of a device are supported")),
		pair(selector("has()", "has() is not supported")),
		pair(claiming("{requests: [{name: r}]}"), "a request that is neither exactly nor firstAvailable"),
		pair(selector("device.allowMultipleAllocations",
			"only driver, attributes and capacity of a device are supported")),
		pair(requesting(", allocationMode: Some"), "the allocation mode Some"),
		pair(requesting(", capacity: {requests: {memory: 1Gi}}"), "a request for a share of a device's capacity"),
		pair(claiming("{requests: [{name: r, exactly: {deviceClassName: gpu.example.com}}], constraints: "+
			"[{distinctAttribute: d/root}]}"), "a constraint without matchAttribute"),
	} {
		want := "ResourceClaimTemplate fabric has " + c[1] +
			", which plan does not evaluate: its devices are not counted"
		if _, got := fitting(t, c[0], offering("{name: a}")); got != want {
			t.Errorf("notes %s, want %s", got, want)
		}
	}
}

func pair(first, second string) []string { return []string{first, second} }

// TestSelectorErrors: a device for which an expression has no value is an error, as it is in kube-scheduler.
func TestSelectorErrors(t *testing.T) {
	t.Parallel()
	const mismatch = "an operator or a function does not fit the type of its operand"
	const regexp = "error parsing regexp: missing closing ): `(`"
	const noModel = "no such key: attributes d model"
	for expression, want := range map[string]string{
		"device.attributes['d'].model == 'H100'":      noModel,
		"!device.attributes['d'].model":               noModel,
		"-device.attributes['d'].model == 1":          noModel,
		"!(device.attributes['d'].model == 'H100')":   noModel,
		"device.capacity['d'].memory == quantity('')": "no such key: capacity d memory",
		"device.driver":                                 mismatch,
		"device.driver > 1":                             mismatch,
		"!(device.driver > 1)":                          mismatch,
		"device.driver && true":                         mismatch,
		"!(device.driver && true)":                      mismatch,
		"!device.driver":                                mismatch,
		"!(O.odd == semver('1.0.0'))":                   "No Major.Minor.Patch elements found",
		"quantity('1') < quantity('2')":                 mismatch,
		"!(semver('1.0.0') >= semver('2.0.0'))":         mismatch,
		"-O.smallest == 1":                              "integer overflow",
		"!device.driver.startsWith(1)":                  mismatch,
		"!(O.odd != 'x' && O.none)":                     "no such key: attributes other.example.com none",
		"!1":                                            mismatch,
		"-true":                                         mismatch,
		"-device.driver == 1":                           mismatch,
		"device.driver.matches(1)":                      mismatch,
		"!device.driver.matches(1)":                     mismatch,
		"device.driver.matches('(')":                    regexp,
		"!device.driver.matches('(')":                   regexp,
		"!!device.driver.matches('(')":                  regexp,
		"!(false || device.driver.matches('('))":        regexp,
		"!quantity('1').isLessThan(semver('1.0.0'))":    mismatch,
		"!quantity('1').isGreaterThan(1)":               mismatch,
		"-quantity('1').compareTo(semver('1.0.0')) < 1": mismatch,
		"!(1).isLessThan(2)":                            mismatch,
		"!semver('1.0.0').isLessThan(semver('1'))":      "No Major.Minor.Patch elements found",
		"!(semver('1') == semver('1'))":                 "No Major.Minor.Patch elements found",
		"!semver('1.0.0').isLessThan(O.odd)":            "No Major.Minor.Patch elements found",
		"!O.odd.isLessThan(semver('1.0.0'))":            "No Major.Minor.Patch elements found",
	} {
		expression = strings.ReplaceAll(expression, "O.", "device.attributes['other.example.com'].")
		want = "claim ml/fabric, request r: the selector " + expression + ", device a: " + want
		got := refusal(t, requesting(selecting(t, expression)),
			offering("{name: a, attributes: {other.example.com/odd: {version: x}, other.example.com/smallest: "+
				"{int: -9223372036854775808}}}"))
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// many repeats the format of a device, each time with the next number.
func many(count int, format string) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf(format, i))
	}
	return strings.Join(all, ", ")
}

// TestRefusedCounts: a count that no claim can have is refused before the search, with the reason.
func TestRefusedCounts(t *testing.T) {
	t.Parallel()
	const (
		tooFew = "the count %d is less than 1; use 1 or more"
		plain  = "{name: d%[1]d}"
		// The search skips no device of these.
		distinct = "{name: gGPU-%[1]d, consumesCounters: [{counterSet: gGPU, counters: {memory: {value: 1%03[1]dKi}}}]}"
		limit    = "claim ml/fabric: its requests need more than 32 devices, the limit of a claim; use several claims"
		huge     = ", count: 9223372036854775807"
		one      = "{name: %s, %s: {deviceClassName: gpu.example.com%s}}"
	)
	exactly := func(name, more string) string { return fmt.Sprintf(one, name, "exactly", more) }
	option := func(name string, count int) string {
		return fmt.Sprintf("{name: %s, deviceClassName: gpu.example.com, count: %d}", name, count)
	}
	requests := func(list ...string) string { return claiming("{requests: [" + strings.Join(list, ", ") + "]}") }
	for name, c := range map[string]struct{ template, want string }{
		"negative":    {requesting(", count: -1"), "claim ml/fabric, request r: " + fmt.Sprintf(tooFew, -1)},
		"33":          {requesting(", count: 33"), limit},
		"huge":        {requesting(huge), limit},
		"all of 40":   {requesting(", allocationMode: All"), limit},
		"a sum of 33": {requests(exactly("r", ", count: 16"), exactly("s", ", count: 17")), limit},
		"a huge sum":  {requests(exactly("r", huge), exactly("s", huge), exactly("u", "")), limit},
		"alternatives that are all too large": {
			requests("{name: r, firstAvailable: ["+option("a", 33)+", "+option("b", 30)+"]}",
				exactly("s", ", count: 3")),
			limit,
		},
		"a negative alternative": {
			requests("{name: r, firstAvailable: [" + option("a", -3) + ", " + option("b", 1) + "]}"),
			"claim ml/fabric, request r: " + fmt.Sprintf(tooFew, -3),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := refusal(t, c.template, offering(many(40, plain))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for name, template := range map[string]string{
		"32":          requesting(", count: 32"),
		"a sum of 32": requests(exactly("r", ", count: 15"), exactly("s", ", count: 17")),
		"a count of zero, which the API server replaces by 1": requests(exactly("r", ", count: 0"),
			exactly("s", ", count: 31")),
		"a smaller alternative": requests("{name: r, firstAvailable: ["+option("a", 20)+", "+option("b", 12)+"]}",
			exactly("s", ", count: 20")),
		"a huge alternative": requests("{name: r, firstAvailable: [{name: a, deviceClassName: gpu.example.com"+huge+
			"}, "+option("b", 12)+"]}", exactly("s", ", count: 20")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, notes := fitting(t, template, partitions(2, distinct)...); got != 1 || notes != "" {
				t.Errorf("%d pods, want 1; notes %s", got, notes)
			}
		})
	}
}

// partitions is a pool of GPUs with 25 possible partitions each. The memory of a GPU suffices for two of them.
func partitions(gpus int, format string) []string {
	var counters, devices []string
	for g := range gpus {
		counters = append(counters, fmt.Sprintf("{name: g%d, counters: {memory: {value: 80Gi}}}", g))
		devices = append(devices, many(25, strings.ReplaceAll(format, "GPU", fmt.Sprint(g))))
	}
	return []string{
		offeringTwice(strings.Join(devices, ", ")),
		strings.Replace(offeringTwice(""), "devices: []", "sharedCounters: ["+strings.Join(counters, ", ")+"]", 1),
	}
}

// TestEqualDevices: a search that fails for one device skips those equal to it, so that it ends within its steps
// although the combinations are too many to try.
func TestEqualDevices(t *testing.T) {
	t.Parallel()
	const (
		part = "{name: gGPU-%[1]d, attributes: {uuid: {string: gGPU-%[1]d}}, " +
			"consumesCounters: [{counterSet: gGPU, counters: {memory: {value: 40Gi}}}]}"
	)
	cores := func(each int) []string {
		var all []string
		for root := range 4 {
			for i := range each {
				all = append(all, fmt.Sprintf("{name: d%d-%d, attributes: {gpu.example.com/root: {string: r%d}, "+
					"gpu.example.com/id: {int: %d}}}", root, i, root, i))
			}
		}
		return []string{offering(strings.Join(all, ", "))}
	}
	rooted := claiming("{requests: [{name: r, exactly: {deviceClassName: gpu.example.com, count: 15}}, {name: s, " +
		"exactly: {deviceClassName: gpu.example.com, count: 15}}], constraints: " +
		"[{matchAttribute: gpu.example.com/root}]}")
	odd := selecting(t, "device.attributes['gpu.example.com'].id == 3")
	for name, c := range map[string]struct {
		template string
		objects  []string
		want     int64
	}{
		"partitions":                    {requesting(", count: 16"), partitions(8, part), 1},
		"too few partitions":            {requesting(", count: 17"), partitions(8, part), 0},
		"a pod more":                    {requesting(", count: 3"), partitions(8, part), 5},
		"a common attribute":            {rooted, cores(30), 4},
		"a common attribute of too few": {rooted, cores(29), 0},
		"equal for the earlier requests": {
			claiming("{requests: [{name: r, exactly: {deviceClassName: gpu.example.com, count: 24}}, " +
				"{name: s, exactly: {deviceClassName: gpu.example.com, count: 4" + odd + "}}]}"), cores(7), 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, notes := fitting(t, c.template, c.objects...); got != c.want || notes != "" {
				t.Errorf("%d pods, want %d; notes %s", got, c.want, notes)
			}
			if c.want == 0 {
				if got := refusal(t, c.template, c.objects...); strings.Contains(got, "too many combinations") {
					t.Error(got)
				}
			}
		})
	}
}

// BenchmarkSteps measures a search that tries as many combinations as it may: none of 200 partitions equals another.
func BenchmarkSteps(b *testing.B) {
	const part = "{name: gGPU-%[1]d, consumesCounters: [{counterSet: gGPU, counters: {memory: {value: 40%03[1]dMi}}}]}"
	objects := append([]string{cpuNode("a"), gpuClass, requesting(", count: 17")}, partitions(8, part)...)
	read := inventory(b, objects...)
	claim := &resourcev1.ResourceClaim{Spec: *read.devices.templates["ml/fabric"]}
	for b.Loop() {
		_, _, err := read.devices.allocate(read.nodes[0].Node, []*resourcev1.ResourceClaim{claim})
		if err == nil || !strings.Contains(err.Error(), "too many combinations") {
			b.Fatal(err)
		}
	}
}
