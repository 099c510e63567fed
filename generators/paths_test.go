package generators

import (
	"fmt"
	"maps"
)

// pathsIn are the scalars anywhere in objects, as paths with their values. Items of lists are called by their names;
// an empty mapping is a value too.
func pathsIn(objects []map[string]any) map[string]bool {
	all := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if len(v) == 0 {
				all[path+"={}"] = true
			}
			for key, below := range v {
				walk(path+"."+key, below)
			}
		case []any:
			for _, item := range v {
				name := ""
				if m, ok := item.(map[string]any); ok {
					name, _ = m["name"].(string)
					m = maps.Clone(m)
					delete(m, "name")
					item = m
				}
				if name == "" {
					walk(path+"[]", item)
				} else {
					all[path+"["+name+"]"] = true
					walk(path+"["+name+"]", item)
				}
			}
		default:
			all[fmt.Sprintf("%s=%v", path, v)] = true
		}
	}
	for _, o := range objects {
		walk(fmt.Sprint(o["kind"]), o)
	}
	return all
}
