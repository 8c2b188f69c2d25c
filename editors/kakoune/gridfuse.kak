# gridfuse for .cu and .cuh files, through kakoune-lsp: to be sourced after `eval %sh{kak-lsp}`.
hook -group gridfuse global BufCreate .*[.]cuh? %{
    # Kakoune has no filetype for CUDA; what it does for C++ fits.
    set-option buffer filetype cpp
    set-option buffer lsp_servers %{
        [gridfuse]
        command = "gridfuse"
        args = ["lsp"]
        root_globs = ["gridfuse.toml", ".git", ".hg"]
        settings_section = "gridfuse"
        [gridfuse.settings.gridfuse]
        arch = "sm_90"
    }
}
