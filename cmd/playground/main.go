//go:build js && wasm

// Command playground is the part of tegen that runs in a page: see package playground. It adds one function to its
// JavaScript world, tegenEvaluate(job, environment, policy), which returns the result as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"syscall/js"

	"github.com/tegen-dev/tegen/internal/playground"
)

func main() {
	debug.SetGCPercent(400) // a page has the memory, and one core
	js.Global().Set("tegenEvaluate", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return evaluate(args[0].String(), args[1].String(), args[2].String())
	}))
	select {} // the function lives as long as the program
}

// evaluate turns a panic into a finding: the program would end, and the page would have to load another.
func evaluate(job, environment, policy string) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = encode(playground.Failed(fmt.Errorf("tegen failed on this; please report it with the job: %v", r)))
		}
	}()
	return encode(playground.Evaluate(job, environment, policy))
}

func encode(r playground.Result) string {
	text, err := json.Marshal(r)
	if err != nil { // it has strings and numbers alone
		panic(err)
	}
	return string(text)
}
