package generators

import (
	"maps"
	"path"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// The scripts take every value from the environment, so that nothing of an author's is ever parsed by a shell. They
// use $NAME, never ${NAME}, which Flux's postBuild would replace, and never $(NAME), which the kubelet would.
const (
	// fetchScript is idempotent: a marker says that the data is there. It is resumable: a partial download is kept, and
	// a whole one gets a name of its own, since servers refuse to resume it (curl#6740). The attempts are the script's,
	// not curl's, which starts each from where the first one did. What a sum does not vouch for and cannot be unpacked
	// is deleted, or no attempt would ever succeed.
	fetchScript = `set -eu
if [ -e "$DATASET_MARKER" ]; then
  echo "present already: $DATASET_MARKER"
  exit 0
fi
mkdir -p "$DATASET_STATE" "$DATASET_DIR"
attempt=1
while [ ! -e "$DATASET_DOWNLOAD" ]; do
  status=0
  curl --fail --location --globoff --silent --show-error --connect-timeout 30 --speed-limit 1024 --speed-time 120 \
    --continue-at - --output "$DATASET_PART" --write-out '%{http_code}\n' "$DATASET_URL" >"$DATASET_PART.http" || status=$?
  read -r http <"$DATASET_PART.http" || http=000
  rm -f "$DATASET_PART.http"
  if [ "$status" = 0 ]; then
    if [ -n "$DATASET_SHA256" ]; then
      echo "$DATASET_SHA256  $DATASET_PART" | sha256sum -c - || {
        rm -f "$DATASET_PART"
        echo "checksum mismatch: the download was deleted" >&2
        exit 1
      }
    fi
    mv "$DATASET_PART" "$DATASET_DOWNLOAD"
    break
  fi
  [ "$attempt" -lt 10 ] || exit "$status"
  attempt=$((attempt + 1))
  if [ "$status" = 33 ] || [ "$http" = 416 ]; then
    echo "the server cannot resume: starting over"
    rm -f "$DATASET_PART"
  else
    sleep 5
  fi
done
case "$DATASET_FORMAT" in
  zip) unzip -o -q "$DATASET_DOWNLOAD" -d "$DATASET_DIR" ;;
  tar) tar -xf "$DATASET_DOWNLOAD" -C "$DATASET_DIR" ;;
  tar.gz) tar -xzf "$DATASET_DOWNLOAD" -C "$DATASET_DIR" ;;
  tar.bz2) tar -xjf "$DATASET_DOWNLOAD" -C "$DATASET_DIR" ;;
  file) mv "$DATASET_DOWNLOAD" "$DATASET_DIR/$DATASET_FILE" ;;
esac || {
  [ -n "$DATASET_SHA256" ] || rm -f "$DATASET_DOWNLOAD"
  echo "cannot be unpacked as $DATASET_FORMAT" >&2
  exit 1
}
rm -f "$DATASET_DOWNLOAD"
touch "$DATASET_MARKER"
echo "done: $DATASET_DIR"
`
	// waitScript ends in failure rather than wait for ever for a dataset that cannot be fetched.
	waitScript = `set -eu
waited=0
for marker in "$@"; do
  until [ -e "$marker" ]; do
    if [ "$waited" -ge "$WAIT_SECONDS" ]; then
      echo "gave up after $waited seconds: $marker is missing; see the prefetch Job" >&2
      exit 1
    fi
    [ $((waited % 60)) -ne 0 ] || echo "waiting for $marker"
    sleep 5
    waited=$((waited + 5))
  done
done
`
)

// fetched is a volume with a dataset.
type fetched struct {
	*job.Storage
	index int
}

func datasets(j *job.Job) []fetched {
	var out []fetched
	for i := range j.Spec.Storage {
		if j.Spec.Storage[i].Dataset != nil {
			out = append(out, fetched{&j.Spec.Storage[i], i})
		}
	}
	return out
}

// state is the directory of a volume in which the fetch keeps its part and its marker. Jobs that share the volume share
// the marker, but never a part: two fetches at once would write into each other's.
func (f fetched) state() string { return path.Join(f.MountPath, ".tegen") }

// key tells one dataset from another on the same volume: a changed URL, checksum or place is fetched again.
func (f fetched) key() string {
	d := f.Dataset
	return contentHash(d.URL, d.SHA256, d.Path, d.Unpack && !d.Tree())
}

func (f fetched) marker() string { return path.Join(f.state(), f.key()+".done") }

func (f fetched) format() string {
	name := strings.ToLower(f.file())
	switch {
	case !f.Dataset.Unpack:
		return "file"
	case strings.HasSuffix(name, ".zip"):
		return "zip"
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return "tar.gz"
	case strings.HasSuffix(name, ".tar.bz2"):
		return "tar.bz2"
	case strings.HasSuffix(name, ".tar"):
		return "tar"
	}
	return "file"
}

// file is the last part of the URL's path.
func (f fetched) file() string {
	name, _, _ := strings.Cut(f.Dataset.URL, "?")
	name, _, _ = strings.Cut(name, "#")
	if strings.HasSuffix(name, "/") {
		return "dataset"
	}
	return path.Base(name) // a rule refuses '.' and '..'
}

// literal is a text that the kubelet hands on as it is: it takes two dollar signs for one in every variable and
// argument.
func literal(text string) string { return strings.ReplaceAll(text, "$$", "$$$$") }

func prefetch(j *job.Job) []runtime.Object {
	var out []runtime.Object
	for _, f := range datasets(j) {
		out = append(out, prefetchJob(j, f))
	}
	return out
}

func prefetchJob(tj *job.Job, f fetched) *batchv1.Job {
	name := tj.Metadata.Name + "-" + componentPrefetch + "-" + f.Name
	template := prefetchTemplate(tj, f)
	hash := contentHash(template, f.Name)
	if tj.Spec.HashedNames {
		name = tj.Metadata.Name + "-" + componentPrefetch + "-" + hash
	}
	j := &batchv1.Job{
		ObjectMeta: versionedMeta(tj, name, componentPrefetch),
		Spec: batchv1.JobSpec{
			BackoffLimit:            ptr[int32](6),
			ActiveDeadlineSeconds:   ptr(seconds(f.Dataset.Deadline)),
			TTLSecondsAfterFinished: expiry(tj),
			Template:                template,
		},
	}
	if tj.Spec.HashedNames {
		annotate(&j.ObjectMeta, names.ContentHash, hash)
	}
	maps.Copy(j.Labels, queueLabels(tj)) // first in its queue, since it is made first, and no higher than the job
	expect(tj, &j.ObjectMeta, template.Spec)
	return j
}

func prefetchTemplate(j *job.Job, f fetched) corev1.PodTemplateSpec {
	pod := podSpec(j, &j.Spec.Roles.Helper)
	pod.RestartPolicy = corev1.RestartPolicyOnFailure // in the same pod, so that the partial download is at hand
	pod.Volumes = []corev1.Volume{mountable(j, f.Storage), scratch("tmp", resource.MustParse("1Gi"))}
	container := fetchContainer(j, f)
	container.Name = job.ContainerFetch
	container.ImagePullPolicy = corev1.PullPolicy(j.Spec.ImagePullPolicy)
	container.Resources = helping(j)
	container.SecurityContext = containerSecurity(true)
	container.VolumeMounts = []corev1.VolumeMount{
		{Name: f.Name, MountPath: f.MountPath, SubPath: f.SubPath},
		{Name: "tmp", MountPath: "/tmp"},
	}
	pod.Containers = []corev1.Container{container}
	return patched(j, job.RoleHelper,
		corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels(j, componentPrefetch)}, Spec: pod})
}

// fetchContainer is the program that fetches a dataset: that of its store.
func fetchContainer(j *job.Job, f fetched) corev1.Container {
	env := []corev1.EnvVar{
		{Name: "DATASET_URL", Value: literal(f.Dataset.URL)},
		{Name: "DATASET_SHA256", Value: f.Dataset.SHA256},
		{Name: "DATASET_DIR", Value: path.Join(f.MountPath, f.Dataset.Path)},
	}
	marker := []corev1.EnvVar{{Name: "DATASET_MARKER", Value: f.marker()}, {Name: "HOME", Value: "/tmp"}}
	switch {
	case f.Dataset.FromS3():
		return bucketContainer(j, f, append(env, marker...))
	case f.Dataset.FromHub():
		return hubContainer(j, f, append(env, marker...))
	}
	return corev1.Container{
		Image:   j.Spec.Images.Fetch,
		Command: []string{"sh", "-c", fetchScript},
		Env: append(append(env,
			corev1.EnvVar{Name: "DATASET_FORMAT", Value: f.format()},
			corev1.EnvVar{Name: "DATASET_FILE", Value: literal(f.file())},
			corev1.EnvVar{Name: "DATASET_STATE", Value: f.state()},
			corev1.EnvVar{
				Name: "DATASET_PART", Value: path.Join(f.state(), f.key()+"."+j.Metadata.Name+".part"),
			},
			corev1.EnvVar{
				Name: "DATASET_DOWNLOAD", Value: path.Join(f.state(), f.key()+"."+j.Metadata.Name+".download"),
			}), marker...),
	}
}

// waitForDatasets holds a worker back until every dataset is there. Waves and hooks of a reconciler cannot do that: a
// suspended job in a wave never ends it (argo-cd#10600).
func waitForDatasets(j *job.Job) *corev1.Container {
	all := datasets(j)
	if len(all) == 0 {
		return nil
	}
	command := []string{"sh", "-c", waitScript, "wait"}
	var mounts []corev1.VolumeMount
	wait := int64(0)
	for _, f := range all {
		command = append(command, f.marker())
		mounts = append(mounts, corev1.VolumeMount{
			Name: f.Name, MountPath: f.MountPath, SubPath: f.SubPath,
			ReadOnly: true,
		})
		wait += seconds(f.Dataset.Deadline)
	}
	return &corev1.Container{
		Name:            "wait-for-dataset",
		Image:           j.Spec.Images.Fetch,
		ImagePullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
		Command:         command,
		Env:             []corev1.EnvVar{{Name: "WAIT_SECONDS", Value: strconv.FormatInt(wait, 10)}},
		Resources:       small(j),
		SecurityContext: containerSecurity(true),
		VolumeMounts:    mounts,
	}
}
