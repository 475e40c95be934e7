# Everything longer than three lines is a script in scripts/. The module list is go.work's.
MODULES := $(shell sed -n 's|^[[:space:]]*\./||p' go.work)
SHELL := /bin/bash
.DEFAULT_GOAL := help

# KUBECONFIG in the environment is the user's own cluster: only `make e2e` may look at it.
unexport KUBECONFIG

.PHONY: help generate fmt tidy lint fix lint-wall test test-race fuzz fault bench demo e2e charts images verify clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

generate: ## Write all generated code, CRDs, RBAC, chart copies and go.work
	scripts/generate.sh

fmt: ## Format all Go code
	gofmt -w $(MODULES) e2e/controlplane

tidy: ## Tidy every go.mod
	scripts/tidy.sh

lint: $(addprefix lint-,$(MODULES)) ## Run the linters, with the wall around the pure packages (lint-apis, ...: one module)

lint-%:
	scripts/lint.sh $*

fix: ## Let the linters repair what they can
	FIX=1 scripts/lint.sh

lint-wall: ## Show that the linters refuse a clock, a client or a context in a pure package
	scripts/test-lint-wall.sh

test: ## All tests of all modules, on an embedded control plane (RACE=1: with the race detector)
	scripts/test.sh $(MODULES)

test-%: ## One module's tests: make test-apis
	scripts/test.sh $*

test-race: ## The tests of apis and of the operators with the race detector
	RACE=1 scripts/test.sh $(filter-out e2e,$(MODULES))

fuzz: ## Run every fuzz target for FUZZTIME (default 20s)
	scripts/fuzz.sh

fault: ## Kills, lost answers, 409s at each write of every story, a choice of the rest: an hour (OT_PLANS=all: hours, OT_PLANS=N: N of each story)
	scripts/fault.sh

bench: ## Measure each operator against its floor: a table, and e2e/bench/results.json (BENCH_ARGS=... for single rows)
	scripts/with-assets.sh e2e go run ./cmd/bench $(BENCH_ARGS)

demo: ## A dozen images through the queue, machines that wait for theirs, and a workspace, live (KEEP=1 leaves it running)
	@echo "Building the demo (the first time, all of it is compiled: some minutes) ..."
	@KEEP=$(KEEP) scripts/with-assets.sh e2e go run ./cmd/demo $(DEMO_ARGS)

e2e: ## The scenarios on a real cluster: make e2e KUBECONFIG=/path/to/kubeconfig (OT_E2E_STORIES=vmscenario or wsscenario: those of virtual machines, of workspaces)
	scripts/e2e.sh "$(KUBECONFIG)"

charts: ## Lint the charts and package them into dist/
	scripts/charts.sh package

images: ## Build the operators' container images with docker or podman (OPERATOR=vm-operator IMAGE=name:tag: one of them)
	scripts/images.sh

verify: ## Regenerate and check everything; fails on a dirty or untracked tree
	scripts/verify.sh

clean: ## Remove what was built in the tree (caches in ~/.cache/open-terrain stay)
	rm -rf bin dist e2e/report e2e/bench/results.json
