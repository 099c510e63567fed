package meaning

import "strconv"

func itoa(n int) string { return strconv.Itoa(n) }

// installedRuntimes are what Trainer 2.3 installs, as far as it says what runs.
const installedRuntimes = `
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [
    {name: node, image: "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"}]}}}}}]}}
---
kind: ClusterTrainingRuntime
metadata: {name: jax-distributed}
spec:
  mlPolicy: {numNodes: 1, jax: {}}
  template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [
    {name: node, image: "nvcr.io/nvidia/jax:25.10-py3"}]}}}}}]}}
`
