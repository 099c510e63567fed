# Everything that is done here more than once. Tools are pinned in mod files of their own, so that none of them is part
# of the product's dependencies: tools.mod, score.mod, test/gotestsum.mod, test/conformance/schemas.mod.
TOOLS := go tool -modfile=tools.mod

# The products, each a Go module that needs none of the others.
MODULES := . rendezvous scheduler

# $(call each,COMMAND) runs a command in each module and fails if one of them does.
each = for module in $(MODULES); do (cd $$module && $(1)) || failed=1; done; exit $${failed:-0}

# $(call gotest,MODULES,ARGUMENTS) runs tests of modules and lists at the end what was skipped, and why. The timeout of
# a package, in the script, is for a machine at a load of 10. Nothing is vetted: "make lint" does so once.
gotest = go tool -modfile=test/gotestsum.mod gotestsum --format $(FORMAT) --raw-command -- \
	test/modules.sh "$(1)" $(2)
FORMAT := pkgname

# As the tests of real programs are run: a test's output is printed while it runs, so one package runs at a time.
talking = $(call gotest,$(1),-v -count=1 -p 1 $(2))

# As the images are built. One compile then serves programs, tests and the control plane that the tests start.
export CGO_ENABLED := 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/tegen, bin/tegen-fn, the function without arguments, and bin/tegen-rendezvous
	go build -trimpath -o bin/tegen ./cmd/tegen
	cd rendezvous && go build -trimpath -o ../bin/tegen-rendezvous ./cmd/tegen-rendezvous
	ln -sf tegen bin/tegen-fn

# Twice as many packages as cores at a time, since a test that waits needs none.
.PHONY: test
test: ## Run the tests of all modules (about 6 minutes where nothing is built yet)
	@echo "a package has its line when its tests are over; the first run compiles for minutes in silence"
	BESIDE=1 $(call gotest,$(MODULES),-p $$((2 * $$(getconf _NPROCESSORS_ONLN))) ./...)

# The programs are built before any test's time runs.
.PHONY: e2e
e2e: FORMAT := standard-verbose
e2e: ## Run the tests on a real control plane, which is built on first use (about 15 minutes)
	go run ./test/cluster/cmd/up --build
	TEGEN_E2E=1 $(call talking,. scheduler,./test/cluster/... ./test/e2e/...)

# The roots are made before any test's time runs, and named by what makes or finds them.
.PHONY: e2e-torch
e2e-torch: ## Run the tests with real PyTorch (needs root and apt; fetches 3 GB once, then about 50 minutes)
	roots=$$(rendezvous/test/torch/setup.sh) && cd rendezvous && \
		TEGEN_TORCH=1 TEGEN_TORCH_ROOTS="$$roots" go test -v -count=1 -timeout 120m ./test/torch/...

.PHONY: e2e-node
e2e-node: ## Run rendered bundles on a real node (needs root on Debian 12; about 30 minutes at first, then 10)
	test/node/run.sh $(if $(SCENARIOS),-test.run '^($(SCENARIOS))$$')

.PHONY: e2e-gitops
e2e-gitops: FORMAT := standard-verbose
e2e-gitops: ## Run rendered jobs under the real Flux and Argo CD (Linux; builds both at first, then 8 minutes)
	test/gitops/setup.sh
	go run ./test/cluster/cmd/up --build source-controller kustomize-controller argocd jobset training-operator
	TEGEN_GITOPS=1 TEGEN_GITOPS_JOBS=$(JOBS) $(call talking,.,./test/e2e/gitops)

.PHONY: e2e-operators
e2e-operators: FORMAT := standard-verbose
e2e-operators: ## Try rendered jobs under every controller that the cluster of KUBECONFIG has
	TEGEN_OPERATORS=1 $(call talking,.,-timeout 90m ./test/e2e/operators)

# Those that test/cluster can start, on a control plane of their own.
OPERATORS := jobset,trainer,training-operator,training-operator-1.8

.PHONY: e2e-operators-lab
e2e-operators-lab: ## Do so with a control plane that it starts, and all that is a Go module (Linux; minutes)
	go run ./test/cluster/cmd/up --nodes 0 --operators $(OPERATORS) -- $(MAKE) e2e-operators

.PHONY: proof
proof: ## Run all tests, and print the tables of docs/proof.md with their results (hours; root on Debian 12)
	go run ./test/proof $(if $(STEPS),-steps $(STEPS)) $(if $(WRITE),-write)

.PHONY: e2e-kind
e2e-kind: ## Run the same on a kind cluster (needs docker, kind, kubectl and root)
	test/node/kind.sh

# The packages whose tests compare with golden files, found by what they call.
GOLDEN = $(shell grep -rlE 'golden[.](Open|Transcripts)\>|"TEGEN_UPDATE"' --include='*_test.go' \
	--exclude-dir=rendezvous --exclude-dir=scheduler . | xargs -n 1 dirname | sort -u)

.PHONY: golden
golden: ## Rewrite the golden files, and print how objects with digests differ; read it all before committing
	TEGEN_UPDATE=1 go test ./schema -run GoldenDefinitions -count=1 # the others are made with them
	TEGEN_UPDATE=1 go test $(GOLDEN) -run 'Golden|Script' -count=1
	cd rendezvous && TEGEN_UPDATE=1 go test ./cmd/... -run Golden -count=1
	cd scheduler && TEGEN_UPDATE=1 go test ./gang/gangcache -run 'Golden|Script' -count=1
	@git diff --quiet HEAD -- golden/objects.txt || test/cases/difference.sh

.PHONY: golden-diff
golden-diff: ## Print how objects with digests differ from those that the commit BASE (default HEAD) renders
	@test/cases/difference.sh $(BASE)

.PHONY: crds
crds: ## Fetch the CRDs of other projects that the tests evaluate by, into a cache (90 MB of Go modules at first)
	go run ./test/upstream/cmd/fetch

.PHONY: verify
verify: ## Check formatting, modules and the schema, and every case with kubeconform and kube-score
	@echo "verifying: the first run downloads and compiles the tools, which takes minutes and says nothing"
	$(call each,go mod tidy -diff && go mod verify)
	linter=$$(go tool -n -modfile=tools.mod golangci-lint) || exit 1; $(call each,$$linter fmt --diff)
	$(TOOLS) cue fmt --check ./schema && $(TOOLS) cue vet ./schema
	TEGEN_CONFORMANCE=1 go test -vet=off -count=1 ./test/conformance

.PHONY: lint
lint: ## Run the linters
	@echo "linting: the first run downloads and compiles the linters, which takes minutes and says nothing"
	linter=$$(go tool -n -modfile=tools.mod golangci-lint) || exit 1; $(call each,$$linter run ./...)

.PHONY: fmt
fmt: ## Format Go and CUE
	linter=$$(go tool -n -modfile=tools.mod golangci-lint) || exit 1; $(call each,$$linter fmt)
	$(TOOLS) cue fmt ./schema

fuzzing = go test $(1) -run '^$$' -fuzz $(2) -fuzzminimizetime 1x -fuzztime $(or $(FUZZTIME),10m)

.PHONY: fuzz
fuzz: ## Fuzz the loader, custom resources, podTemplate, printer and rendezvous, each for FUZZTIME (default 10m)
	$(call fuzzing,./schema,FuzzLoad)
	$(call fuzzing,./schema,FuzzDefinitions)
	$(call fuzzing,./schema,FuzzDecode)
	$(call fuzzing,./internal/apis,FuzzObject)
	$(call fuzzing,./internal/podpatch,FuzzPatch)
	$(call fuzzing,./internal/manifest,FuzzAppend)
	cd rendezvous && $(call fuzzing,./keys,FuzzHandler)
	cd rendezvous && $(call fuzzing,./keys,FuzzText)
	cd rendezvous && $(call fuzzing,./tcpstore,FuzzStore)
	cd rendezvous && $(call fuzzing,./tcpstore,FuzzDecoder)
	cd rendezvous && $(call fuzzing,./proxystore,FuzzMembership)

.PHONY: bench
bench: ## Measure tegen beside helm, kustomize and cue
	go run ./bench

.PHONY: bench-scheduler
bench-scheduler: ## Measure tegen-scheduler beside kube-scheduler on a real control plane
	cd scheduler && go run ./bench

.PHONY: bench-rendezvous
bench-rendezvous: ## Measure tegen-rendezvous, beside an etcd with the v2 API if there is one
	cd rendezvous && go run ./bench

.PHONY: faults
faults: ## Fail torch's agents and their servers at random for TEGEN_FAULTS each (default 5m), from TEGEN_SEED
	roots=$$(rendezvous/test/torch/setup.sh) && cd rendezvous && \
		TEGEN_TORCH=1 TEGEN_TORCH_ROOTS="$$roots" TEGEN_FAULTS=$(or $(TEGEN_FAULTS),5m) \
		go test -v -count=1 -timeout 180m ./test/torch -run TestFaults

# What of the images is built, with commas. TAG and REGISTRY name them; without a TAG they have the version's.
IMAGES ?= tegen,tegen-rendezvous,tegen-scheduler
ARCHITECTURES ?= amd64,arm64
comma := ,

.PHONY: images
images: ## Write the container images to dist/images, without a container engine; docs/images.md says more
	go run ./release -dir dist/images -images "$(IMAGES)" -registry "$(REGISTRY)" -tag "$(TAG)" \
		-platforms "$(addprefix linux/,$(subst $(comma), ,$(ARCHITECTURES)))" images

.PHONY: push
push: ## Build the images and push them to REGISTRY, such as ghcr.io/acme, with docker's or podman's credentials
	@test -n "$(REGISTRY)" || { echo "no registry: make push REGISTRY=ghcr.io/acme" >&2; exit 1; }
	@$(MAKE) --no-print-directory images
	go run ./release -dir dist/images -images "$(IMAGES)" -registry "$(REGISTRY)" -tag "$(TAG)" \
		$(if $(PLAIN_HTTP),-plain-http) push

.PHONY: e2e-install
e2e-install: ## Install all programs, and build the example, from a module proxy that has HEAD (a minute)
	TEGEN_INSTALL=1 go test -vet=off -v -count=1 -timeout 60m ./test/modules

.PHONY: e2e-images
e2e-images: ## Build the images from two clones of HEAD, compare, and run them where podman is (minutes each)
	TEGEN_IMAGES="$(IMAGES)" TEGEN_ARCHITECTURES="$(ARCHITECTURES)" \
		go test -vet=off -v -count=1 -timeout 60m -run TestImages ./images

# A release has all platforms and images; a snapshot, without VERSION, those that PLATFORMS and IMAGES name.
.PHONY: release
release: ## Write all files of the release VERSION, or of a snapshot, to dist/release; docs/release.md says more
	go run ./release -dir dist/release -tag "$(VERSION)" -platforms "$(PLATFORMS)" -images "$(IMAGES)" \
		-registry "$(or $(REGISTRY),ghcr.io/tegen-dev)" release

.PHONY: e2e-release
e2e-release: ## Make a snapshot for this machine from two clones of HEAD, compare, and render with its archive (minutes)
	TEGEN_RELEASE=1 go test -vet=off -v -count=1 -timeout 60m -run TestSnapshot ./release

.PHONY: push-release
push-release: ## Push the images of dist/release to REGISTRY, which it was made for
	@test -n "$(REGISTRY)" || { echo "no registry: make push-release REGISTRY=ghcr.io/tegen-dev" >&2; exit 1; }
	go run ./release -dir dist/release/images -images "$(IMAGES)" -registry "$(REGISTRY)" \
		$(if $(PLAIN_HTTP),-plain-http) push

# tegen for a page, small enough to wait for, and the page around it. The Go toolchain has the other half of the bridge.
# Without inlining the program is a sixth smaller, and no slower in a browser.
.PHONY: playground
playground: site/node_modules/.package-lock.json ## Build the playground into site/public/playground
	GOOS=js GOARCH=wasm go build -trimpath -gcflags=all=-l -ldflags='-s -w' -o bin/playground.wasm ./cmd/playground
	GO_WASM_EXEC="$$(go env GOROOT)/lib/wasm/wasm_exec.js" TEGEN_WASM="$(CURDIR)/bin/playground.wasm" \
		npm --prefix site run playground

# The site is README.md and docs/, by VitePress; site/package-lock.json pins it and all that it needs.
.PHONY: site
site: playground ## Build the site of the documents, with the playground, into site/dist (Node.js 20 or newer)
	npm --prefix site run build

# Not npm ci: it wants the lock to name packages of every platform, and a registry of one's own may have those of few.
site/node_modules/.package-lock.json: site/package-lock.json
	npm --prefix site install --no-save

.PHONY: site-test
site-test: ## Build the site and read every page of it in a real Chromium (root on Debian gets one installed)
	browser=$$(site/setup.sh) && $(MAKE) --no-print-directory site && \
		TEGEN_BROWSER="$$browser" npm --prefix site test

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist site/dist site/shots site/public/playground
