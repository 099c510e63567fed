package schema

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/spelling"
)

// replaced is a claim of the author's in whose place an Environment mounts another one.
type replaced struct {
	volume   int
	own, now string
}

// silentNotes tell of what is valid and does otherwise than its author may think, without a word from the cluster.
func (j *Job) silentNotes() (notes []string) {
	s := &j.Spec
	for _, r := range j.asked.replaced {
		notes = append(notes, fmt.Sprintf("spec.storage[%d].claim: the Environment mounts the claim %s in place of "+
			"%s, whose files are not there", r.volume, r.now, r.own))
	}
	notes = append(notes, j.asked.overrides...)
	if note := j.graceNote(); note != "" {
		notes = append(notes, "spec.gracePeriod: "+note)
	}
	notes = append(notes, s.Launch().optionNotes()...)
	notes = append(notes, s.literalNotes("spec", s.Command, s.Args, s.Env, s.EnvFrom)...)
	for i := range s.Groups {
		g := &s.Groups[i]
		notes = append(notes, s.literalNotes(fmt.Sprintf("spec.groups[%d]", i), g.Command, g.Args, g.Env, g.EnvFrom)...)
	}
	if m := j.machine; m != nil && s.Resources.GPU > 0 && len(m.NodeSelector) > 0 {
		var others []string
		for key, value := range j.asked.nodes {
			if _, same := m.NodeSelector[key]; !same {
				others = append(others, key+": "+value)
			}
		}
		if slices.Sort(others); len(others) > 0 {
			notes = append(notes, fmt.Sprintf("spec.resources.machine: workers need nodes of %s that have the "+
				"Environment's labels too, %s: where none has both, they wait for ever", m.Name,
				strings.Join(others, ", ")))
		}
	}
	return append(notes, j.defaultClassNotes()...)
}

// graceNote: torchrun kills its processes after a time of its own, 30 seconds, which gracePeriod does not change
// (docs/rendezvous.md, "When a pod is stopped").
func (j *Job) graceNote() string {
	s, l := &j.Spec, j.Spec.Launch()
	torchrun := s.Torchrun() || l != nil && l.Program != "" && !l.dlrover()
	if s.Framework != FrameworkTorchelastic || !torchrun || !j.asked.grace ||
		s.GracePeriod.Duration <= 30*time.Second || l.Option("shutdown_timeout") != nil ||
		s.Checkpoint != nil && s.Checkpoint.Save != nil {
		return ""
	}
	return fmt.Sprintf("torchrun kills its processes 30 seconds after SIGTERM, and not after %s: set checkpoint.save "+
		"for one that takes longer", short(s.GracePeriod))
}

// torchOptions are torchrun's of 1.13 to 2.14 (torch/distributed/run.py), with underscores.
var torchOptions = []string{
	"duplicate_stderr_filters", "duplicate_stdout_filters", "event_log_handler", "help", "local_addr",
	"local_ranks_filter", "log_dir", "log_line_prefix_template", "logs_specs", "master_addr", "master_port",
	"max_restarts", "module", "monitor_interval", "nnodes", "no_python", "node_rank", "nproc_per_node", "numa_binding",
	"print_completion", "rdzv_backend", "rdzv_conf", "rdzv_endpoint", "rdzv_id", "redirects", "role", "run_path",
	"shutdown_timeout", "signals_to_handle", "standalone", "start_method", "tee", "virtual_local_rank",
}

// optionNotes tell of options that look like mistyped ones: torchrun ends with its usage. Others may be of a torch that
// is newer than what is known here, and a beginning of one is one.
func (l *Launch) optionNotes() (notes []string) {
	if l == nil || l.Program != LauncherTorchrun && l.Program != "torch.distributed.run" {
		return nil
	}
	for _, o := range l.Options {
		meant := spelling.Nearest(o.Name, torchOptions)
		begins := func(option string) bool { return strings.HasPrefix(option, o.Name) }
		if !strings.HasPrefix(o.written, "--") || meant == "" || slices.ContainsFunc(torchOptions, begins) {
			continue
		}
		if !strings.Contains(o.written, "_") {
			meant = strings.ReplaceAll(meant, "_", "-")
		}
		notes = append(notes, fmt.Sprintf("%s: torchrun has no option %s and would end with its usage: did you mean "+
			"--%s?", o.path, o.written, meant))
	}
	return notes
}

// literal finds what the kubelet would replace, but for what is escaped.
var literal = lazy.Regexp(`(?:^|[^$])\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// ownVariables are names that tegen, Kubernetes and controllers give to containers.
var ownVariables = lazy.Regexp(`^(PET|TEGEN|JAX|HOROVOD|OMPI|DMLC|BYTEPS|BYTESCHEDULER|NCCL|` +
	`FI|TPU|UCX|MEGASCALE|GLOO|NUM|JOBSET|VC|KUBERNETES)_|` +
	`^(CHECKPOINT_DIR|DIST_BACKEND|HOME|HOSTNAME|JOB_COMPLETION_INDEX|SLICE_ID)$|` +
	`_(SERVICE_HOST|SERVICE_PORT|PORT)$`)

// literalNotes tell of variables that no container of these pods has, which Kubernetes leaves as they are written. What
// a shell runs it substitutes itself; operators and envFrom bring names that are unknown here.
func (s *Spec) literalNotes(at string, command, args []string, env []Env, from []EnvFrom) (notes []string) {
	known := slices.Contains([]string{TargetJob, TargetPods, TargetJobSet}, s.Target)
	if !known || len(from) > 0 {
		return nil
	}
	inTemplate := string(s.PodTemplate)
	note := func(field, text string, later []Env) {
		if !strings.Contains(text, "$(") {
			return
		}
		for _, m := range literal().FindAllStringSubmatch(text, -1) {
			name := m[1]
			own := ownVariables().MatchString(name)
			named := func(e Env) bool { return e.Name == name }
			if slices.ContainsFunc(later, named) && !own {
				notes = append(notes, fmt.Sprintf("%s: Kubernetes leaves $(%s) as it is, because %s is not set before "+
					"this variable: set it earlier in %s.env, or have a shell read it", field, name, name, at))
			}
			if !slices.ContainsFunc(env, named) && !own && !tutorialEnv[name] && !strings.Contains(inTemplate, name) {
				notes = append(notes, fmt.Sprintf("%s: no variable %s is there, and Kubernetes leaves $(%s) as it is: "+
					"set it in %s.env, or write $$(%s) where that is meant", field, name, name, at, name))
			}
		}
	}
	words := slices.Concat(command, args)
	shell := shellText(words)
	for i, word := range words {
		if !strings.Contains(word, "$") {
			continue
		}
		field := fmt.Sprintf("%s.command[%d]", at, i)
		if i >= len(command) {
			field = fmt.Sprintf("%s.args[%d]", at, i-len(command))
		}
		if i != shell {
			note(field, word, nil)
		}
	}
	for i, e := range env {
		if e.Value != nil {
			note(fmt.Sprintf("%s.env[%d].value", at, i), *e.Value, env[i:])
		}
	}
	return notes
}

// defaultClassNotes tell where a job is for EKS that a claim of many readers and writers asks for more than its default
// class gives: the EBS driver has ReadWriteMany for block devices alone (kubernetes-sigs/aws-ebs-csi-driver#2178).
func (j *Job) defaultClassNotes() (notes []string) {
	s := &j.Spec
	aws := s.Identity != nil && (s.Identity.IRSA != nil || s.Identity.PodIdentity != nil) ||
		s.Placement.Provisioner == "eks" ||
		j.machine != nil && slices.ContainsFunc(machinesAWS(), func(m Machine) bool {
			return m.Name == j.machine.Name
		})
	for i := range s.Storage {
		d := s.Storage[i].Dynamic
		if aws && d != nil && d.StorageClass == "" && d.AccessMode == "ReadWriteMany" {
			notes = append(notes, fmt.Sprintf("spec.storage[%d]: the claim is ReadWriteMany in the default class, and "+
				"volumes of EBS, which that is on EKS, cannot be: it stays pending. Name efs, fsx, a claim or "+
				"dynamic.storageClass", i))
		}
	}
	return notes
}
