#!/usr/bin/env bash
# Makes the book of docs/ with mdBook:
#
#     docs/build.sh           # writes target/book/; open target/book/index.html
#
# Without mdBook in target/tools it is installed there from crates.io, which takes about two minutes of processor time.
# Where the environment .venv exists (notebooks/run.sh makes it), the notebooks become pages, too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../tests/setup.sh"
version=0.5.4
book=$target/book tools=$target/tools

case "${1:-}" in
    '') ;;
    -h | --help) explain "${BASH_SOURCE[0]}" && exit ;;
    *) fail "unknown option $1" "usage: docs/build.sh" ;;
esac

if [ "$("$tools/bin/mdbook" --version 2>/dev/null)" != "mdbook v$version" ]; then
    command -v cargo >/dev/null || fail "cargo was not found" "install Rust with rustup (stable)"
    say "cargo install mdbook $version into $tools"
    cargo install mdbook --locked --version "$version" --no-default-features --features search --root "$tools" ||
        fail "mdBook could not be installed" "see the lines above; it needs the network once"
fi

# mdBook empties the folder of the book; the notebooks are made elsewhere and copied.
pages=$target/book-notebooks
if [ -x "$venv/bin/jupyter-nbconvert" ]; then
    mkdir -p "$pages"
    # The page of notebooks/course/01.ipynb is course-01.html.
    find "$root/notebooks" -name '*.ipynb' -not -path '*/.*' | while read -r notebook; do
        name=${notebook#"$root/notebooks/"}
        name=${name%.ipynb}
        page=$pages/${name//\//-}.html
        [ "$page" -nt "$notebook" ] || "$venv/bin/jupyter-nbconvert" --log-level=WARN --to html "$notebook" --output "$page"
    done
fi
say "mdbook build docs"
(cd "$root" && BOOK_NOTEBOOKS=$pages "$tools/bin/mdbook" build docs --dest-dir "$book")
# What is copied because it lies beside the pages, and is in them already or not for readers.
rm -rf "$book/cards" "$book/book.py" "$book/build.sh" "$book/book.toml" "$book/__pycache__"
[ ! -d "$pages" ] || { mkdir -p "$book/notebooks" && cp "$pages"/*.html "$book/notebooks/"; }
say "Done: $book/index.html"
