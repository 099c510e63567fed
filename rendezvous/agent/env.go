package agent

import (
	"os"
	"strconv"
	"strings"
)

// environ is a worker's environment: the agent's, and torchrun's variables.
func (r *run) environ(local int, errorFile string) []string {
	w, a := r.world, r.Agent
	env := append([]string{}, r.Environ...)
	set := func(key, value string) { env = append(env, key+"="+value) } // the last of a name counts
	num := func(key string, n int) { set(key, strconv.Itoa(n)) }
	num("LOCAL_RANK", local)
	num("RANK", w.Base+local)
	num("GROUP_RANK", w.Rank)
	num("ROLE_RANK", w.RoleBase+local)
	set("ROLE_NAME", a.Role)
	num("LOCAL_WORLD_SIZE", a.Workers)
	num("WORLD_SIZE", w.Total)
	num("GROUP_WORLD_SIZE", w.Size)
	num("ROLE_WORLD_SIZE", w.RoleTotal)
	set("MASTER_ADDR", w.MasterAddr)
	num("MASTER_PORT", w.MasterPort)
	num("TORCHELASTIC_RESTART_COUNT", r.restarts)
	num("TORCHELASTIC_MAX_RESTARTS", r.MaxRestarts)
	set("TORCHELASTIC_RUN_ID", r.RunID)
	set("TORCHELASTIC_USE_AGENT_STORE", "False") // in each world rank 0's worker listens at MASTER_PORT
	set("TORCHELASTIC_ERROR_FILE", errorFile)
	set("TORCHELASTIC_SIGNALS_TO_HANDLE", signalNames(r.Signals))
	if !has(r.Environ, "NCCL_ASYNC_ERROR_HANDLING") && !has(r.Environ, "TORCH_NCCL_ASYNC_ERROR_HANDLING") {
		set("NCCL_ASYNC_ERROR_HANDLING", "1")       // until torch 2.1
		set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1") // since
	}
	if a.Workers > 1 && !has(r.Environ, "OMP_NUM_THREADS") {
		set("OMP_NUM_THREADS", "1") // each would start a thread for each processor
	}
	return env
}

func has(env []string, key string) bool {
	for _, e := range env {
		if strings.HasPrefix(e, key+"=") {
			return true
		}
	}
	return false
}

func signalNames(signals []os.Signal) string {
	all := make([]string, len(signals))
	for i, s := range signals {
		all[i] = signalName(s)
	}
	return strings.Join(all, ",")
}
