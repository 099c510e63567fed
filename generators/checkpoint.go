package generators

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// What a preStop hook does before the kubelet sends SIGTERM. Its arguments are a signal, the seconds that a checkpoint
// takes, and a word of the launcher's command line. It uses $NAME, never ${NAME}, which Flux's postBuild would replace.
const (
	// heldScript holds a launcher still, so that it neither closes the run nor starts anything again, lets its
	// processes write their checkpoint, and kills it: the pod has failed, whatever code they end with. A launcher is a
	// process of this container that is called so, or a Python that was told to run nothing else. Its copies, and all
	// else that has the word among its arguments, are no launchers.
	heldScript = `cd /proc
launches() {
  [ ! -e "$1/ns/mnt" ] || [ "$1/ns/mnt" -ef self/ns/mnt ] || return 1
  tr '\0' '\n' <"$1/cmdline" 2>/dev/null | (
    IFS= read -r word
    case $word in
      "$2" | */"$2") exit 0 ;;
      python* | */python* | pypy* | */pypy*) ;;
      *) exit 1 ;;
    esac
    while last=$word; IFS= read -r word; do
      case $word in
        "$2" | */"$2") exit 0 ;;
        -*) ;;
        *) case $last in -[XW]) ;; *) exit 1 ;; esac ;;
      esac
    done
    exit 1
  )
}
parent() {
  while read -r key value; do
    [ "$key" = PPid: ] && echo "$value"
  done <"$1/status"
}
agents=
for agent in [0-9]*; do
  launches "$agent" "$3" && ! launches "$(parent "$agent")" "$3" && agents="$agents $agent"
done
left=$2
for agent in $agents; do
  kill -STOP "$agent" || continue
  workers=
  for worker in [0-9]*; do
    [ "$(parent "$worker")" = "$agent" ] && workers="$workers $worker"
  done
  for worker in $workers; do kill -s "$1" "$worker"; done
  for worker in $workers; do
    while [ "$left" -gt 0 ] && grep -qs '^State:[[:space:]][^ZX]' "$worker/status"; do
      sleep 1
      left=$((left - 1))
    done
  done
  kill -KILL "$agent"
done
`
	// aloneScript signals the container's first process, with which the hook ends as well.
	aloneScript = `left=$2
kill -s "$1" 1
while [ "$left" -gt 0 ]; do
  sleep 1
  left=$((left - 1))
done
`
)

// saveHook has a worker write a checkpoint before it ends, nil where nobody asks for one.
func saveHook(j *job.Job, component string) *corev1.Lifecycle {
	c := j.Spec.Checkpoint
	if c == nil || c.Save == nil || component != componentWorker {
		return nil
	}
	script, agent := aloneScript, j.Spec.Agent()
	if agent != "" {
		script = heldScript
	}
	command := []string{
		"sh", "-c", script, job.SaveHook, strings.TrimPrefix(c.Save.Signal, "SIG"),
		strconv.FormatInt(seconds(c.Save.Takes), 10),
	}
	if agent != "" {
		command = append(command, agent)
	}
	return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}}
}

// seesAgent has the containers of a pod share their processes: alone in its container the launcher is process 1, and
// the kernel lets no process inside stop or kill that one.
func seesAgent(j *job.Job, component string) *bool {
	if saveHook(j, component) == nil || j.Spec.Agent() == "" {
		return nil
	}
	return ptr(true)
}
