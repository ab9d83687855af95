# `make demo` and `make test` are all one needs: both set everything up by themselves, once, in .venv. `make e2e` needs what docs/e2e.md says.
# ARGS goes on to the command: `make test ARGS="tests/queue -x"`, `make demo ARGS="--keep"`.

VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/runs
READY := $(VENV)/installed
ARGS :=

# Half of a test run's start is compiling, and each child process of a test would compile again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test unit test-all nightly faults soak e2e conformance figures durations lint prose types imports generate generated docs release check clean

help: ## What there is
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

demo: $(RUNS) ## An embedded cluster, the scheduler at work on it, a profile changed live
	@$(BIN)/placewright demo $(ARGS)

# A worker a core, and more where tests wait (tests/conftest.py). Workers take over from each other what is left, so that none waits for a long file at the end.
PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal

test: $(READY) ## The tests, but for those that take long and show no more of a feature (docs/tests.md)
	@$(PYTEST) $(ARGS)

unit: $(READY) ## The tests of the core and the golden cases
	@$(PYTEST) -m unit $(ARGS)

test-all: $(READY) ## All tests
	@$(PYTEST) --all $(ARGS)

nightly: $(READY) ## All tests, with browsers that look at each page in all windows
	@$(PYTEST) --all --nightly $(ARGS)

# Each run adds a line to the report; the table is made of them (docs/faults.md).
faults: $(READY) ## The fault tests, five seeds each, and a table of what they found
	@mkdir -p build && rm -f build/faults.jsonl
	@$(BIN)/pytest --all tests/faults --seeds 5 --report build/faults.jsonl $(ARGS); code=$$?; \
		cd tests && ../$(BIN)/python -m faults.report ../build/faults.jsonl; exit $$code

soak: $(READY) ## Ten minutes at 200 pods a second with churn
	@mkdir -p build && rm -f build/soak.jsonl
	@$(BIN)/pytest tests/faults/test_soak.py -s --timeout 0 --soak-seconds 600 --soak-rate 200 --report build/soak.jsonl $(ARGS)

# Only here is something built for it; pytest itself takes what the environment names.
e2e: $(READY) ## The tests that want a real API server (docs/e2e.md)
	@if [ -z "$$KUBECONFIG_E2E" ]; then \
		KUBEBUILDER_ASSETS=$$($(BIN)/python -m tools.kubernetes) || exit; \
		export KUBEBUILDER_ASSETS; \
	fi; \
	$(BIN)/pytest --real tests/contract tests/e2e $(ARGS)

# Takes E2E_TEST and KUBEBUILDER_ASSETS from the environment, or builds what it needs (docs/conformance.md).
conformance: $(READY) ## Upstream's own end-to-end tests of scheduling, on a real control plane
	@$(BIN)/python -m tools.conformance $(ARGS)

# Takes some twenty minutes, and a machine that has nothing else to do. What wants a real API server is measured where KUBEBUILDER_ASSETS names one
# with a kube-scheduler. ARGS="decisions reload" measures only these.
figures: $(READY) ## Measure what the README and the docs quote, and write it there
	@$(BIN)/python -m benchmarks.quotedfigures measure $(ARGS)

lint: $(READY) ## Layout and style, by ruff, and words, by .ci/prose.toml
	@$(BIN)/ruff format --quiet --diff operator console lab benchmarks tools tests manifests examples .ci
	@$(BIN)/ruff check --quiet operator console lab benchmarks tools tests manifests examples .ci
	@$(BIN)/python .ci/prose.py

# Takes as long as all targets that it measures.
durations: $(READY) ## Measure how long the checks take, and write it to docs/tests.md
	@$(BIN)/python .ci/durations.py

# ARGS is a commit, to compare with.
trends: $(READY) ## How large the house is, by room
	@$(BIN)/python .ci/trends.py $(ARGS)

types: $(READY) ## Types, by mypy --strict
	@$(BIN)/mypy
	@$(BIN)/mypy --no-error-summary manifests/helm/generate.py manifests/components/monitoring/dashboard.py .ci/prose.py .ci/trends.py .ci/durations.py

imports: $(READY) ## Which room may import which
	@$(BIN)/lint-imports --no-logo --no-cache

# A file, and the module that prints it.
MADE := \
	crds/schedulingprofiles.yaml=tools.generated.definition \
	crds/schedulingprofile.schema.json=placewright.profiles.editorschema \
	docs/reference.md=tools.generated.reference \
	docs/messages.md=tools.generated.messages \
	docs/metrics.md=tools.generated.metricspage \
	lab/kubesandbox/kinds/kubernetes.json=kubesandbox.kinds.kubernetestypes \
	manifests/base/clusterrole.yaml=placewright.engine.permissions \
	manifests/base/role.yaml=placewright.engine.ownrole

generate: $(READY) ## Write the files that are made from code
	@set -e; for each in $(MADE); do \
		file=$${each%%=*}; $(BIN)/python -m $${each#*=} > $$file.new; mv $$file.new $$file; \
	done
	@$(BIN)/python manifests/helm/generate.py
	@$(BIN)/python manifests/components/monitoring/dashboard.py
	@$(BIN)/python -m benchmarks.quotedfigures write

generated: $(READY) ## Are the files that are made from code up to date?
	@for each in $(MADE); do \
		file=$${each%%=*}; $(BIN)/python -m $${each#*=} | diff -u $$file - \
			|| { echo "$$file is out of date: run 'make generate'" >&2; exit 1; }; \
	done
	@$(BIN)/python manifests/helm/generate.py --check
	@$(BIN)/python manifests/components/monitoring/dashboard.py --check
	@$(BIN)/python -m benchmarks.quotedfigures check

# Only the site needs its builder and the library that draws its diagrams, so `make test` installs neither.
# PLACEWRIGHT_REPOSITORY is the address to which links of files lead.
MERMAID := mermaid-12.3.0
docs: $(READY) ## The documentation as a site, in build/site/VERSION; a dead link fails
	@$(BIN)/zensical --version >/dev/null 2>&1 || $(BIN)/pip install --quiet --disable-pip-version-check 'zensical>=0.0.73'
	@$(BIN)/python -m tools.generated.site build/docs build/site
	@test -f build/$(MERMAID).tgz || npm pack --silent --pack-destination build $(subst -,@,$(MERMAID)) >/dev/null || echo "npm brought no $(MERMAID): pages load it from another site"
	@test ! -f build/$(MERMAID).tgz || tar -xzmf build/$(MERMAID).tgz -C build/docs --strip-components=2 package/dist/mermaid.min.js
	@$(BIN)/zensical build --clean --strict

# Only a release needs the writer of its bills of materials, so `make test` does not install it.
RELEASE := $(VENV)/release
release: $(RELEASE) ## The files of a release, in build/release (docs/releasing.md)
	@$(BIN)/python -m tools.release build/release

check: lint types imports generated docs test-all ## Everything that CI checks

clean: ## Remove what can be made again
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# The copy of what declares dependencies and entry points tells what was installed: a new date on unchanged files installs nothing.
# The demo needs a third of what the tests need, and starts that much sooner.
DECLARED := pyproject.toml console/pyproject.toml lab/pyproject.toml examples/legacy-plugins/pyproject.toml
unchanged = $(BIN)/python -c pass 2>/dev/null && cat $(DECLARED) | cmp -s - $(1) 2>/dev/null
$(RUNS): $(DECLARED)
	@if ! { $(call unchanged,$(RUNS)) || $(call unchanged,$(READY)); }; then sh .ci/setup $(VENV); fi
	@cat $(DECLARED) > $(RUNS)

$(RELEASE): $(DECLARED) | $(RUNS)
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[console,lab,release]' -e console -e lab
	@touch $(RELEASE)

$(READY): $(DECLARED)
	@if ! { $(call unchanged,$(READY)); }; then sh .ci/setup $(VENV) tools; fi
	@cat $(DECLARED) > $(READY)
