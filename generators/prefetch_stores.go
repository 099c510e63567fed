package generators

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// As fetchScript, these take every value from the environment, and a marker says that the data is there. What was
// fetched before is not fetched again: both programs look at what is in the directory.
const (
	// bucketScript fetches what is below a prefix, or one object. A prefix with nothing below it is no error to aws,
	// and here it is one: it is mostly mistyped. aws leaves the halves of files that it was killed at, so that a
	// directory of the fetch's own is made like the bucket, by --delete, and linked to where the data goes.
	bucketScript = `set -eu
if [ -e "$DATASET_MARKER" ]; then
  echo "present already: $DATASET_MARKER"
  exit 0
fi
mkdir -p "$DATASET_STATE" "$DATASET_DIR"
case "$DATASET_URL" in
  */)
    aws s3 sync --delete --only-show-errors "$DATASET_URL" "$DATASET_PART"
    if ! ls -A "$DATASET_PART" 2>/dev/null | grep -q .; then
      echo "nothing is below $DATASET_URL" >&2
      exit 1
    fi
    cp -Rlf "$DATASET_PART/." "$DATASET_DIR/" || cp -Rf "$DATASET_PART/." "$DATASET_DIR/"
    rm -rf "$DATASET_PART"
    ;;
  *)
    aws s3 cp --only-show-errors "$DATASET_URL" "$DATASET_PART"
    if [ -n "$DATASET_SHA256" ]; then
      echo "$DATASET_SHA256  $DATASET_PART" | sha256sum -c - || {
        rm -f "$DATASET_PART"
        echo "checksum mismatch: the download was deleted" >&2
        exit 1
      }
    fi
    mv "$DATASET_PART" "$DATASET_DIR/$DATASET_FILE"
    ;;
esac
touch "$DATASET_MARKER"
echo "done: $DATASET_DIR"
`
	// hubScript fetches a repository by huggingface_hub, of the job's own image, and looks whether it did:
	// snapshot_download takes a directory that is there for all of it where the Hub cannot be reached.
	hubScript = `import os, pathlib
marker = pathlib.Path(os.environ["DATASET_MARKER"])
if marker.exists():
    print("present already: %s" % marker)
    raise SystemExit(0)
from huggingface_hub import HfApi, snapshot_download
where = {"repo_id": os.environ["DATASET_REPOSITORY"], "repo_type": os.environ["DATASET_KIND"]}
info = HfApi().repo_info(revision=os.environ.get("DATASET_REVISION"), **where)
root = pathlib.Path(os.environ["DATASET_DIR"])
snapshot_download(revision=info.sha, local_dir=root, **where)
missing = [f.rfilename for f in info.siblings if not (root / f.rfilename).exists()]
if missing:
    raise SystemExit("%d files were not fetched, the first is %s" % (len(missing), missing[0]))
marker.parent.mkdir(parents=True, exist_ok=True)
marker.touch()
print("done: %s" % root)
`
)

// keysOf are the keys of a dataset's Secret as variables of their names.
func keysOf(d *job.Dataset) (env []corev1.EnvVar) {
	if d.Secret == "" {
		return nil
	}
	for _, key := range d.KeysOf() {
		env = append(env, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: d.Secret}, Key: key,
			},
		}})
	}
	return env
}

// bucketContainer fetches from S3, or from a store with its API.
func bucketContainer(j *job.Job, f fetched, env []corev1.EnvVar) corev1.Container {
	env = append(env,
		corev1.EnvVar{Name: "DATASET_STATE", Value: f.state()},
		corev1.EnvVar{Name: "DATASET_FILE", Value: literal(f.file())},
		corev1.EnvVar{Name: "DATASET_PART", Value: path.Join(f.state(), f.key()+"."+j.Metadata.Name+".part")},
	)
	for _, v := range [][2]string{{"AWS_ENDPOINT_URL", f.Dataset.Endpoint}, {"AWS_REGION", f.Dataset.Region}} {
		if v[1] != "" {
			env = append(env, corev1.EnvVar{Name: v[0], Value: literal(v[1])})
		}
	}
	return corev1.Container{
		Image: j.Spec.Images.AWS, Command: []string{"sh", "-c", bucketScript},
		Env: append(env, keysOf(f.Dataset)...),
	}
}

// hubContainer fetches from the Hugging Face Hub by the training image, whose huggingface_hub knows its cache and its
// mirrors by the same variables as the program does.
func hubContainer(j *job.Job, f fetched, env []corev1.EnvVar) corev1.Container {
	kind, name, revision := f.Dataset.Repository()
	env = append(env,
		corev1.EnvVar{Name: "DATASET_KIND", Value: kind}, corev1.EnvVar{Name: "DATASET_REPOSITORY", Value: name},
		corev1.EnvVar{Name: "HF_HOME", Value: path.Join(f.state(), "hub")}, // its caches may outgrow /tmp
		corev1.EnvVar{Name: "HF_HUB_DISABLE_TELEMETRY", Value: "1"})
	if revision != "" {
		env = append(env, corev1.EnvVar{Name: "DATASET_REVISION", Value: revision})
	}
	return corev1.Container{
		Image: j.Spec.Image, Command: []string{"python3", "-c", hubScript},
		Env: append(env, keysOf(f.Dataset)...),
	}
}
