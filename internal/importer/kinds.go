package importer

import (
	"errors"
	"slices"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
)

// readers know the kinds that make the pods of training jobs.
func readers() []reader {
	return []reader{
		{batchJobKind, readJob},
		{apischema.GroupKind{Kind: "Pod"}, readPods},
		{apis.JobSetKind.GroupKind(), readJobSet},
		{apis.TrainJobKind.GroupKind(), readTrainJob},
		{apis.VCJobKind.GroupKind(), readVCJob},
		{apis.TorchElasticJobKind.GroupKind(), readTorchElasticJob},
		{apis.PyTorchJobKind.GroupKind(), readPyTorchJob},
		{apis.MXJobKind.GroupKind(), readMXJob},
		{apis.MPIJobKind.GroupKind(), readMPIJob},
		{apis.MxJobKind("mlkube.io").GroupKind(), readMlkube},
		{apis.MxJobKind("mxnet.mlkube.io").GroupKind(), readMlkube},
		{apis.DLRoverJobKind.GroupKind(), readDLRoverJob},
	}
}

// batchJobKind is Kubernetes' own Job; Volcano has another of the name.
var batchJobKind = apischema.GroupKind{Group: "batch", Kind: "Job"}

// reader makes a job of an object, whatever version of its kind that is.
type reader struct {
	kind apischema.GroupKind
	read func(*stream, *object) (*draft, error)
}

// errNotTraining says that an object is of a kind that could be a job, and is none.
var errNotTraining = errors.New("not a training job")

// drafts are the training jobs of the stream, in its order.
func (s *stream) drafts() (all []*draft) {
	s.dropMade()
	for _, o := range s.objects {
		i := slices.IndexFunc(readers(), func(r reader) bool { return o.gvk.GroupKind() == r.kind })
		if o.draft != nil || o.replacedBy != "" {
			continue
		}
		if i < 0 {
			if unknownJob(o) {
				s.notes = append(s.notes, o.note(Dropped, "%s", unread(o)))
				o.reported = true
			}
			continue
		}
		d, err := readers()[i].read(s, o)
		if err != nil {
			if !errors.Is(err, errNotTraining) {
				s.notes = append(s.notes, o.note(Dropped, "%v", err))
				o.reported = true
			}
			continue
		}
		all = append(all, d)
	}
	if len(all) == 0 { // a Job that nothing tells from one that fetches data is taken for training where it is alone
		for _, o := range s.objects {
			if o.is("batch", "Job") && o.draft == nil && !o.reported && !isPrefetch(o) {
				all = append(all, readPlainJob(s, o))
			}
		}
	}
	return all
}

// isPrefetch says whether an object is a Job by which tegen fetches a dataset.
func isPrefetch(o *object) bool {
	component := o.view().at("spec", "template", "metadata", "labels", names.LabelComponent).text()
	return component == "prefetch" || component == "keygen"
}
