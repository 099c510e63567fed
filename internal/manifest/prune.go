package manifest

// pruning says which values of one key are left out.
type pruning struct {
	null  bool
	empty bool   // an object with nothing left in it
	zero  string // this JSON value
}

func (pr pruning) matches(json []byte, emptied bool) bool {
	return pr.null && json[0] == 'n' ||
		pr.empty && emptied ||
		pr.zero != "" && string(json) == pr.zero
}

// droppedAtTop: status is the cluster's to write. The head of a typed object
// is on the page already.
func (p *printer) droppedAtTop(key []byte) bool {
	switch string(key) {
	case "status":
		return true
	case "apiVersion", "kind":
		return p.typed
	}
	return false
}

// noise tells what encoding/json prints of a Go struct that nobody wrote. Only
// keys listed here lose an empty value: elsewhere {} and [] carry meaning, as
// in "emptyDir: {}", "podSelector: {}" (all pods) and "egress: []" (deny all).
func (p *printer) noise(key []byte) pruning {
	if !p.typed {
		return pruning{null: string(key) == "creationTimestamp"}
	}
	switch string(key) {
	case "metadata", "resources", "strategy", "updateStrategy", "status", "spec":
		// Struct fields without a pointer, for which omitempty does nothing;
		// absent and empty are the same object to the API server.
		return pruning{null: true, empty: true}
	case "targetPort":
		// IntOrString is a struct too. The API server takes 0 as unset.
		return pruning{null: true, zero: "0"}
	case "divisor":
		// Quantity likewise, in resourceFieldRef.
		return pruning{null: true, zero: `"0"`}
	}
	return pruning{null: true}
}
