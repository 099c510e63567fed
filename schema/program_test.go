package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/job"
)

// TestLaunchIn: a launcher is found where a command begins, behind what only starts another program, and nowhere else.
func TestLaunchIn(t *testing.T) {
	for words, want := range map[string]string{
		"python¦train.py¦--strategies¦ddp|deepspeed":                     "",
		"python¦-c¦import x\nhorovodrun = x.y\n":                         "",
		"python¦-c¦import os; torchrun ":                                 "",
		"sh¦-c¦python train.py # (torchrun does it)":                     "",
		"sh¦-c¦# by hand:\n# torchrun train.py\npython train.py":         "",
		"sh¦-c¦python train.py --strategies 'ddp|deepspeed|fsdp'":        "",
		"sh¦-c¦echo \"use\ntorchrun here\"; python train.py":             "",
		"sh¦-c¦echo if torchrun fails":                                   "",
		"sh¦-c¦pip install deepspeed && python train.py":                 "",
		"bash¦run.sh¦-c¦torchrun":                                        "",
		"bash¦-euxo¦pipefail¦-c¦torchrun train.py":                       "torchrun",
		"bash¦-o¦errexit¦-c¦torchrun train.py":                           "torchrun",
		"bash¦-ce¦torchrun train.py":                                     "torchrun",
		"timeout¦3600¦torchrun¦train.py":                                 "torchrun",
		"timeout¦-s¦KILL¦-k¦10¦1h¦/opt/conda/bin/torchrun¦train.py":      "torchrun",
		"nice¦-n¦5¦numactl¦--cpunodebind=0¦accelerate¦launch¦train.py":   "accelerate launch",
		"env¦A=b¦python3¦-u¦-m¦torch.distributed.run¦train.py":           "torch.distributed.run",
		"bash¦-c¦env -u NCCL_DEBUG torchrun train.py":                    "torchrun",
		"sh¦-c¦if ! torchrun train.py; then exit 1; fi":                  "torchrun",
		"sh¦-c¦until timeout $LIMIT torchrun train.py; do sleep 1; done": "torchrun",
		"sh¦-c¦{ time torchrun train.py; }":                              "torchrun",
		"sh¦-c¦cd /src && \\\n  exec torchrun train.py":                  "torchrun",
		"sh¦-c¦case $X in a) deepspeed train.py;; esac":                  "deepspeed",
		"sh¦-c¦echo 'a # b'; echo \"it's\" # no\ntorchrun train.py":      "torchrun",
	} {
		_, m := job.LaunchIn(strings.Split(words, "¦"))
		if got := strings.Join(m, "¦"); (want == "") != (m == nil) || !strings.Contains(got, want) {
			t.Errorf("%q: found %q, want %q", words, got, want)
		}
	}
}
