//go:build unix

package launcher

import "syscall"

const usr1, usr2 = syscall.SIGUSR1, syscall.SIGUSR2 // whose numbers differ between systems
