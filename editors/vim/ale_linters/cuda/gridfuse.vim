" Author: gridfuse
" Description: CUDA dynamic parallelism, for ALE: it finds this file in the runtimepath.

call ale#Set('cuda_gridfuse_executable', 'gridfuse')
call ale#Set('cuda_gridfuse_init_options', {})

" The directory of gridfuse.toml, or that of the repository, or that of the file.
function! ale_linters#cuda#gridfuse#Root(buffer) abort
    let l:manifest = ale#path#FindNearestFile(a:buffer, 'gridfuse.toml')
    let l:repository = ale#path#FindNearestDirectory(a:buffer, '.git')

    return !empty(l:manifest) ? fnamemodify(l:manifest, ':h')
    \    : !empty(l:repository) ? fnamemodify(l:repository, ':h:h')
    \    : fnamemodify(bufname(a:buffer), ':p:h')
endfunction

call ale#linter#Define('cuda', {
\   'name': 'gridfuse',
\   'lsp': 'stdio',
\   'executable': {buffer -> ale#Var(buffer, 'cuda_gridfuse_executable')},
\   'command': '%e lsp',
\   'project_root': function('ale_linters#cuda#gridfuse#Root'),
\   'initialization_options': {buffer -> ale#Var(buffer, 'cuda_gridfuse_init_options')},
\})
