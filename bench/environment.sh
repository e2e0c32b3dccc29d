# Sourced by the programs of this folder: where their data are, and functions that create them.

bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$bench")
export TIDEGATE_BENCH_CACHE=${TIDEGATE_BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidegate/bench}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
export PYTHONDONTWRITEBYTECODE=1
python=$TIDEGATE_BENCH_CACHE/python/bin/python

# need COMMAND DEBIAN_PACKAGE
need() {
  command -v "$1" >/dev/null || (apt-get update -qq && apt-get install -y -qq "$2") >&2
}

install() {
  need wrk wrk
  if ! cmp -s "$bench/requirements.txt" "$TIDEGATE_BENCH_CACHE/python/requirements.txt"; then
    mkdir -p "$TIDEGATE_BENCH_CACHE"
    python3 -m venv "$TIDEGATE_BENCH_CACHE/python"
    "$python" -m pip install --quiet --disable-pip-version-check --requirement "$bench/requirements.txt"
    cp "$bench/requirements.txt" "$TIDEGATE_BENCH_CACHE/python/requirements.txt"
  fi
}

# The peers that are npm packages, with their Node.js. The drivers of other databases are omitted, and package scripts
# do not run.
install_peers() {
  local folder=$TIDEGATE_BENCH_CACHE/npm lists=("$bench/peers/npm/package.json" "$bench/peers/npm/package-lock.json")
  [[ -f $folder/installed-from ]] && cat "${lists[@]}" | cmp -s - "$folder/installed-from" && return
  need npm npm
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "${lists[@]}" "$bench/peers/npm/.npmrc" "$folder"
  npm ci --prefix "$folder" --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  cat "${lists[@]}" >"$folder/installed-from"
}

build() {
  # One command, because two would select different features of shared dependencies and build them twice.
  cargo build --release --package tidegate --package tidegate-bench --features network --bins
  CARGO_TARGET_DIR=$CARGO_TARGET_DIR/peer cargo build --release --locked --manifest-path "$bench/peers/rmcp-hello/Cargo.toml"
}

# tpch_data SCALE: TPC-H at that scale, once.
tpch_data() {
  local folder=$TIDEGATE_BENCH_CACHE/tpch-$1
  [[ -d $folder ]] && return
  "$CARGO_TARGET_DIR/release/tpch-data" "$1" "$folder.unfinished"
  mv "$folder.unfinished" "$folder"
}
