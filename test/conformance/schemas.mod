// The Kubernetes release whose API the goldens are checked against. Only a
// file of it is read, api/openapi-spec/swagger.json; nothing is compiled:
//
//	go mod download -json -modfile=test/conformance/schemas.mod k8s.io/kubernetes
//
// It stands apart from tools.mod because k8s.io/kubernetes requires its staging
// modules at v0.0.0, which exist only through its own replace lines: wherever
// it is required without naming all of them, "go list -m all" fails.
//
// To update: change the version here to the one that go.mod's k8s.io/api stands
// for, delete schemas.sum, and run the command above.
module github.com/tegen-dev/tegen/test/conformance/schemas

go 1.26.0

require k8s.io/kubernetes v1.36.3
