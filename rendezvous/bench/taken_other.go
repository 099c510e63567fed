//go:build !linux && !darwin

package main

import "io/fs"

func taken(info fs.FileInfo) int64 { return info.Size() }
