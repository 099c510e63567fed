package note

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/machine"
)

// SilentNotes tell of what is valid and does otherwise than its author may think, without a word from the cluster.
func SilentNotes(j *job.Job) (notes []string) {
	s := &j.Spec
	for _, r := range j.Origin.Asked.Replaced {
		notes = append(notes, fmt.Sprintf("spec.storage[%d].claim: the Environment mounts the claim %s in place of "+
			"%s, whose files are not there", r.Volume, r.Now, r.Own))
	}
	notes = append(notes, j.Origin.Asked.Overrides...)
	if note := graceNote(j); note != "" {
		notes = append(notes, "spec.gracePeriod: "+note)
	}
	notes = append(notes, optionNotes(s.Launch())...)
	notes = append(notes, literalNotes(s, "spec", s.Command, s.Args, s.Env, s.EnvFrom)...)
	for i := range s.Groups {
		g := &s.Groups[i]
		notes = append(notes, literalNotes(s, fmt.Sprintf("spec.groups[%d]", i), g.Command, g.Args, g.Env,
			g.EnvFrom)...)
	}
	if m := j.Origin.Machine; m != nil && s.Resources.GPU > 0 && len(m.NodeSelector) > 0 {
		var others []string
		for key, value := range j.Origin.Asked.Nodes {
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
	return append(notes, defaultClassNotes(j)...)
}

// graceNote: torchrun kills its processes after a time of its own, 30 seconds, which gracePeriod does not change
// (docs/rendezvous.md, "When a pod is stopped").
func graceNote(j *job.Job) string {
	s, l := &j.Spec, j.Spec.Launch()
	torchrun := s.Torchrun() || l != nil && l.Program != "" && !l.Dlrover()
	if s.Framework != job.FrameworkTorchelastic || !torchrun || !j.Origin.Asked.Grace ||
		s.GracePeriod.Duration <= 30*time.Second || l.Option("shutdown_timeout") != nil ||
		s.Checkpoint != nil && s.Checkpoint.Save != nil {
		return ""
	}
	return fmt.Sprintf("torchrun kills its processes 30 seconds after SIGTERM, and not after %s: set checkpoint.save "+
		"for one that takes longer", job.Short(s.GracePeriod))
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
func optionNotes(l *job.Launch) (notes []string) {
	if l == nil || l.Program != job.LauncherTorchrun && l.Program != "torch.distributed.run" {
		return nil
	}
	for _, o := range l.Options {
		meant := spelling.Nearest(o.Name, torchOptions)
		begins := func(option string) bool { return strings.HasPrefix(option, o.Name) }
		if !strings.HasPrefix(o.Written, "--") || meant == "" || slices.ContainsFunc(torchOptions, begins) {
			continue
		}
		if !strings.Contains(o.Written, "_") {
			meant = strings.ReplaceAll(meant, "_", "-")
		}
		notes = append(notes, fmt.Sprintf("%s: torchrun has no option %s and would end with its usage: did you mean "+
			"--%s?", o.Path, o.Written, meant))
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
func literalNotes(s *job.Spec, at string, command, args []string, env []job.Env, from []job.EnvFrom) (notes []string) {
	known := slices.Contains([]string{job.TargetJob, job.TargetPods, job.TargetJobSet}, s.Target)
	if !known || len(from) > 0 {
		return nil
	}
	inTemplate := string(s.PodTemplate)
	note := func(field, text string, later []job.Env) {
		if !strings.Contains(text, "$(") {
			return
		}
		for _, m := range literal().FindAllStringSubmatch(text, -1) {
			name := m[1]
			own := ownVariables().MatchString(name)
			named := func(e job.Env) bool { return e.Name == name }
			if slices.ContainsFunc(later, named) && !own {
				notes = append(notes, fmt.Sprintf("%s: Kubernetes leaves $(%s) as it is, because %s is not set before "+
					"this variable: set it earlier in %s.env, or have a shell read it", field, name, name, at))
			}
			if !slices.ContainsFunc(env, named) && !own && !job.TutorialEnv[name] &&
				!strings.Contains(inTemplate, name) {
				notes = append(notes, fmt.Sprintf("%s: no variable %s is there, and Kubernetes leaves $(%s) as it is: "+
					"set it in %s.env, or write $$(%s) where that is meant", field, name, name, at, name))
			}
		}
	}
	words := slices.Concat(command, args)
	shell := job.ShellText(words)
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
func defaultClassNotes(j *job.Job) (notes []string) {
	s := &j.Spec
	aws := s.Identity != nil && (s.Identity.IRSA != nil || s.Identity.PodIdentity != nil) ||
		s.Placement.Provisioner == "eks" ||
		j.Origin.Machine != nil && slices.ContainsFunc(machine.MachinesAWS(), func(m job.Machine) bool {
			return m.Name == j.Origin.Machine.Name
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
