//go:build !linux

package main

func showTimers() {}
