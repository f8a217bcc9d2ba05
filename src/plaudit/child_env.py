"""What the processes that plaudit starts find in their environment: what they need by name, and no key.

A list of what is let through, not of what is held back: a key can be in a variable of any name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|LANG|LANGUAGE|LC_\w+|TMPDIR|TMP|TEMP|VIRTUAL_ENV|COLUMNS|NO_COLOR"
    r"|PYTHON\w*|CONDA_PREFIX|CONDA_DEFAULT_ENV|NIX_\w+|XDG_\w+|LD_\w+|DYLD_\w+"
    r"|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAMDATA"
    r"|NUMBER_OF_PROCESSORS|PROCESSOR_\w+"
    r"|OMP_\w+|KMP_\w+|GOMP_\w+|MKL_\w+|OPENBLAS_\w+|GGML_\w+|LLAMA_\w+"
    r"|CUDA_\w+|NVIDIA_\w+|ROCR_\w+|ROCM_\w+|HIP_\w+|HSA_\w+|VK_\w+|MESA_\w+|METAL_\w+",
    re.IGNORECASE,
)
_FOR_DOWNLOADS = re.compile(
    r"PIP_\w+|https?_proxy|all_proxy|no_proxy|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE",
    re.IGNORECASE,
)
"""The user's own index and proxy, which may well carry a password: that is how pip gets it."""
_SECRET = re.compile(r"key|token|secret|passw|passphrase|credential|auth", re.IGNORECASE)


def child_environment(
    environment: Mapping[str, str] = os.environ, *, for_downloads: bool = False
) -> dict[str, str]:
    """The variables that a child process gets. `for_downloads`: it is pip, and has to reach its index."""
    needed = {
        name: value
        for name, value in environment.items()
        if _NEEDED.fullmatch(name) and not _SECRET.search(name)
    }
    if for_downloads:
        needed |= {name: value for name, value in environment.items() if _FOR_DOWNLOADS.fullmatch(name)}
    return needed
