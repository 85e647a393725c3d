#!/usr/bin/env bash
# Uploads a release, as far as there are tokens; without one it says what it waits for, and ends well:
#
#     PYPI_TOKEN=pypi-… kernel-spec/release/upload.sh pypi DIST
#     GH_TOKEN=… GITHUB_REPOSITORY=owner/name RELEASE_TAG=v0.1.0 kernel-spec/release/upload.sh github DIST
#
# pypi: the wheels, with twine (of the environment that tools.sh makes: put it on PATH). TWINE_REPOSITORY_URL names another index.
# github: everything in DIST, to the release of the tag, with gh.
set -euo pipefail
where=${1:?pypi or github}
cd "${2:?the folder of the release}"
sha256sum --check --strict --quiet SHA256SUMS
wheels=(*.whl)
# PyPI's limit for a file of a project that has not asked for more. Who has been given more names it in the variable.
limit=${PYPI_LIMIT_MB:-100}

case $where in
    pypi)
        if [ -z "${PYPI_TOKEN:-}" ]; then
            echo "Not uploaded to PyPI: PYPI_TOKEN is not set. Make a token on PyPI, and store it as a secret of this name in the environment \`pypi\` of the repository."
            exit
        fi
        for wheel in "${wheels[@]}"; do
            size=$(($(stat -c %s "$wheel") / 1000000))
            if [ "$size" -gt "$limit" ]; then
                echo "error: $wheel has $size MB, and PyPI takes $limit MB. Ask PyPI for a higher limit, and set PYPI_LIMIT_MB to it. Nothing was uploaded." >&2
                exit 1
            fi
        done
        twine check --strict "${wheels[@]}"
        TWINE_USERNAME=__token__ TWINE_PASSWORD=$PYPI_TOKEN twine upload --non-interactive --disable-progress-bar "${wheels[@]}"
        ;;
    github)
        if [ -z "${GH_TOKEN:-}" ] || [ -z "${RELEASE_TAG:-}" ]; then
            echo "Not uploaded to GitHub: GH_TOKEN or RELEASE_TAG is not set. The workflow has both when a tag v… is pushed."
            exit
        fi
        export GH_REPO=${GITHUB_REPOSITORY:?owner/name}
        gh release view "$RELEASE_TAG" >/dev/null 2>&1 || gh release create "$RELEASE_TAG" --verify-tag --draft --title "$RELEASE_TAG" --notes-file /dev/null
        gh release upload "$RELEASE_TAG" --clobber -- SHA256SUMS *.whl *.cdx.json
        ;;
    *)
        echo "error: $where is neither pypi nor github" >&2
        exit 1
        ;;
esac
