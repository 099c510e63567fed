package main

import (
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

const (
	// late is how much later than asked for the kernel may wake a thread of a service; its own default is 50 µs. With
	// 1 ms less is computed still, but writes that wait for others of their kind wait longer.
	late = 300 * time.Microsecond
	// restarted is set in the environment of a program that has executed itself.
	restarted = "TEGEN_RENDEZVOUS_RESTARTED"
)

// coarseTimers has a service, and the store that it starts, sleep at least as long as late. The thread of Go's runtime
// that looks after the others sleeps 20 µs at a time whenever there is something to do, which for a service that waits
// for disks and clients a thousand times a second was a sixth of its work. A thread has this of the one that started
// it, and that thread is there before a program's own code: so the program executes itself, once, as the same process.
// Where that cannot be it goes on as it is.
func coarseTimers(args []string) {
	_, again := os.LookupEnv(restarted)
	_ = os.Unsetenv(restarted) // it is there or not
	// With one processor that thread takes it from calls of the kernel that hold it. So it does in the store on a
	// machine of two or three, whose swaps were measured to be no slower for it.
	if again || len(args) < 2 || args[1] != serveCommand || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	program, err := os.Executable()
	if err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_TIMERSLACK, 0, 0)
	if failed != 0 || time.Duration(was) >= late {
		return
	}
	if _, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, uintptr(late), 0); failed != 0 {
		return
	}
	_ = syscall.Exec(program, args, slices.Concat(os.Environ(), []string{restarted + "=1"})) // it returns if it fails
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, was, 0)
}
