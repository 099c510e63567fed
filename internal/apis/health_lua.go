package apis

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/names"
)

// Argo CD runs a rule with Lua's base and table libraries alone, so rules have no functions of strings. It takes what
// the rule returns for the object's health.

// luaConditions collects the types of conditions that are True.
const luaConditions = `local said = {}
if obj.status and obj.status.conditions then
  for _, c in ipairs(obj.status.conditions) do
    if c.status == "True" then
      said[c.type] = c.message or c.type
    end
  end
end
`

// luaAny tells whether one of several words was said, by the message that came with it.
const luaAny = `local function any(words)
  for _, word in ipairs(words) do
    if said[word] then
      return said[word]
    end
  end
end
`

// luaHook is true of a hook: a sync waits for the end of one, not for its start.
const luaHook = `local hook = obj.metadata.annotations and obj.metadata.annotations["argocd.argoproj.io/hook"]
`

// luaOwn is true of what tegen rendered: a rule is for all objects of a kind that an instance of Argo CD knows.
var luaOwn = `local own = obj.metadata.labels and obj.metadata.labels["app.kubernetes.io/managed-by"] == "` +
	names.ManagedBy + `"
`

// luaSuspend says why nothing runs.
const luaSuspend = `if %s then
  local queue = obj.metadata.labels and obj.metadata.labels["kueue.x-k8s.io/queue-name"]
  return {status = %q, message = queue and "waits in queue " .. queue or "suspended"}
end
`

const luaProgressing = `return {status = "Progressing", message = "not all of its pods run"}
`

// lua is the rule of a custom resource.
func (h *Health) lua(suspended string) string {
	var b strings.Builder
	if h.Phases == nil {
		b.WriteString(luaConditions)
	} else {
		b.WriteString("local said = {}\n")
		for _, path := range h.Phases {
			fmt.Fprintf(&b, "if %s then\n  said[obj.%s] = obj.%s\nend\n", luaPath(path), path, path)
		}
	}
	b.WriteString(luaAny)
	b.WriteString(luaState(h.Failed, Degraded))
	if h.Passive {
		fmt.Fprintf(&b, "return {status = %q, message = %s or \"\"}\n", Healthy, luaPath(h.Phases[0]))
		return b.String()
	}
	b.WriteString(luaState(h.Done, Healthy))
	if h.Suspend != "" {
		fmt.Fprintf(&b, luaSuspend, luaPath(h.Suspend), suspended)
	} else {
		b.WriteString(luaState(h.Suspended, suspended))
	}
	b.WriteString(luaHook)
	if h.Jobs != "" {
		fmt.Fprintf(&b, luaJobs, luaPath(h.Jobs), h.Jobs)
	} else {
		fmt.Fprintf(&b, "if not hook and any(%s) then\n  return {status = %q, message = any(%[1]s)}\nend\n",
			luaWords(h.Running), Healthy)
	}
	b.WriteString(luaProgressing)
	return b.String()
}

const luaJobs = `if not hook and %s then
  local jobs, waiting = 0, 0
  for _, job in ipairs(obj.%s) do
    jobs = jobs + 1
    if job.ready < job.active or job.ready + job.succeeded == 0 then
      waiting = waiting + 1
    end
  end
  if jobs > 0 and waiting == 0 then
    return {status = "Healthy", message = "running"}
  end
end
`

// luaState returns a status where one of the words was said.
func luaState(words []string, status string) string {
	if len(words) == 0 {
		return ""
	}
	list := luaWords(words)
	return fmt.Sprintf("if any(%s) then\n  return {status = %q, message = any(%s)}\nend\n", list, status, list)
}

func luaWords(words []string) string { return `{"` + strings.Join(words, `", "`) + `"}` }

// luaPath is a field of which no step need be there.
func luaPath(path string) string {
	steps := strings.Split(path, ".")
	parts := make([]string, len(steps))
	for i := range steps {
		parts[i] = "obj." + strings.Join(steps[:i+1], ".")
	}
	return strings.Join(parts, " and ")
}

// builtInRules replace what Argo CD has for kinds of Kubernetes. Other objects of these kinds keep the health that they
// have.
func builtInRules(suspended string) []Rule {
	job := luaOwn + luaJobOfOthers + luaConditions + luaAny +
		luaState([]string{string(batchv1.JobFailed), string(batchv1.JobFailureTarget)}, Degraded) +
		luaState([]string{string(batchv1.JobComplete), string(batchv1.JobSuccessCriteriaMet)}, Healthy) +
		fmt.Sprintf(luaSuspend, luaPath("spec.suspend"), suspended) + luaHook + luaJobRuns + luaProgressing
	return []Rule{
		{Kind: schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}, Lua: job},
		{Kind: schema.GroupKind{Kind: "Pod"}, Lua: luaHook + luaOwn + fmt.Sprintf(luaPod, suspended)},
		{Kind: schema.GroupKind{Kind: "PersistentVolumeClaim"}, Lua: luaOwn + luaClaim},
	}
}

// luaJobOfOthers is Argo CD's own health of a Job (gitops-engine, pkg/health/health_job.go), which takes one that was
// resumed for complete.
const luaJobOfOthers = `if not own then
  local over, suspended, failed, message = false, false, nil, ""
  for _, c in ipairs(obj.status and obj.status.conditions or {}) do
    if c.type == "Failed" then
      failed = c.message or ""
    elseif c.type == "Complete" or c.type == "Suspended" then
      over, message = true, c.message or ""
      suspended = suspended or c.type == "Suspended" and c.status == "True"
    end
  end
  if failed then
    return {status = "Degraded", message = failed}
  end
  if suspended then
    return {status = "Suspended", message = ""}
  end
  return {status = over and "Healthy" or "Progressing", message = message}
end
`

// luaJobRuns calls a training Job healthy while it runs.
const luaJobRuns = `if not hook and obj.status then
  if (obj.status.ready or 0) + (obj.status.succeeded or 0) >= (obj.spec.parallelism or 1) then
    return {status = "Healthy", message = "running"}
  end
end
`

// luaPod is Argo CD's own health of a Pod (gitops-engine, pkg/health/health_pod.go), and two states of the pods of
// target: pods, which it has not: one that a scheduling gate holds, and one that trains.
const luaPod = `local function exit(statuses)
  for _, c in ipairs(statuses or {}) do
    local ended = c.state and c.state.terminated
    if ended and ended.message then
      return ended.message
    end
    if ended and ended.reason == "OOMKilled" then
      return ended.reason
    end
    if ended and ended.exitCode ~= 0 then
      return "container " .. c.name .. " failed with exit code " .. ended.exitCode
    end
  end
end
local status = obj.status or {}
local message = status.message or ""
if own and obj.spec.schedulingGates and #obj.spec.schedulingGates > 0 then
  return {status = %q, message = "suspended by a scheduling gate"}
end
local always = obj.spec.restartPolicy == "Always" or obj.spec.restartPolicy == nil
local broken = {
  CrashLoopBackOff = true, CreateContainerConfigError = true, CreateContainerError = true, ErrImageNeverPull = true,
  ErrImagePull = true, ImageInspectError = true, ImagePullBackOff = true, PostStartHookError = true,
  PreCreateHookError = true, PreStartHookError = true, RunContainerError = true,
}
if always then
  for _, c in ipairs(status.containerStatuses or {}) do
    local waiting = c.state and c.state.waiting
    if waiting and waiting.reason and broken[waiting.reason] then
      return {status = "Degraded", message = waiting.message or waiting.reason}
    end
  end
end
local ready = false
for _, c in ipairs(status.conditions or {}) do
  ready = ready or c.type == "Ready" and c.status == "True"
end
if status.phase == "Succeeded" then
  return {status = "Healthy", message = message}
end
if status.phase == "Failed" then
  if message == "" then
    message = exit(status.initContainerStatuses) or exit(status.containerStatuses) or ""
  end
  return {status = "Degraded", message = message}
end
if status.phase == "Running" and ready and (always or own and not hook) then
  return {status = "Healthy", message = message}
end
if status.phase == "Running" and always then
  for _, c in ipairs(status.containerStatuses or {}) do
    if c.lastState and c.lastState.terminated then
      return {status = "Degraded", message = message}
    end
  end
end
if status.phase == "Running" or status.phase == "Pending" then
  return {status = "Progressing", message = message}
end
return {status = "Unknown", message = message}
`

// luaClaim is Argo CD's own health of a claim, and one state more: a volume that is made for its first pod keeps the
// claim of a suspended job pending.
const luaClaim = `local phase = obj.status and obj.status.phase
if phase == "Bound" then
  return {status = "Healthy"}
end
if phase == "Lost" then
  return {status = "Degraded"}
end
if phase == "Pending" and own then
  return {status = "Healthy", message = "waits for its first pod"}
end
if phase == "Pending" then
  return {status = "Progressing"}
end
return {status = "Unknown"}
`
