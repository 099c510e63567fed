//go:build !linux

// Command lab runs on Linux only.
package main

import "fmt"

func main() { fmt.Println("skipped: real nodes run on Linux only") }
