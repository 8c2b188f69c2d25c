" The linter beside this file in a real Vim with ALE: vim -u NONE -i NONE -n -N -es -S ale_test.vim
"
" GRIDFUSE_TEST_ALE names the directory of ALE; the working directory has bfs.cu in it, and `gridfuse` is on PATH. Says what went well on
" the standard error.
" How long anything may take: tests/src/patience.rs says it, in ms. On a busy machine it is much longer than usual.
let s:patience = str2nr($GRIDFUSE_TEST_PATIENCE) / 1000

function! s:Fail(what) abort
    verbose echo "\n" . a:what . "\n"
    cquit
endfunction

function! s:Wait(what, condition) abort
    let l:begin = reltime()
    while !a:condition()
        if reltimefloat(reltime(l:begin)) > s:patience
            call s:Fail('waited in vain: ' . a:what . "\n" . execute('messages') . string(ale#engine#GetLoclist(bufnr(''))))
        endif
        sleep 50m
    endwhile
    verbose echo 'ok: ' . a:what
endfunction

try
    let &runtimepath = expand('<sfile>:p:h') . ',' . $GRIDFUSE_TEST_ALE . ',' . &runtimepath
    " A rewrite changes two files: the first one isn't saved when the second one is opened.
    set hidden
    let g:ale_linters = {'cuda': ['gridfuse']}
    " Settings arrive as well.
    let g:ale_cuda_gridfuse_init_options = {'severity': {'serialized-launches': 'error'}}
    filetype plugin on
    runtime! plugin/ale.vim
    edit bfs.cu
    call assert_equal('cuda', &filetype)
    call ale#Queue(0)
    call cursor(1, 1)
    let s:row = search('expand<<<')
    call s:Wait('a diagnostic', {-> !empty(filter(copy(ale#engine#GetLoclist(bufnr(''))),
    \   {_, item -> item.lnum == s:row && item.type is# 'E' && get(item, 'code', '') is# 'serialized-launches'}))})

    " Who is asked in a menu: the aggregation per block.
    runtime autoload/ale/util.vim
    function! ale#util#Input(message, value, ...) abort
        for l:line in split(a:message, "\n")
            if l:line =~# 'Collect launches per block'
                return matchstr(l:line, '^\d\+')
            endif
        endfor

        call s:Fail('not offered: ' . a:message)
    endfunction

    ALECodeAction
    call s:Wait('the rewrite', {-> search('gridfuse::Aggregator<gridfuse::PerBlock', 'nw') > 0})
    call s:Wait('the header', {-> filereadable('gridfuse.cuh') || bufloaded('gridfuse.cuh')})
    wall
    call s:Wait('the header is written', {-> filereadable('gridfuse.cuh')})
catch
    call s:Fail(v:exception . "\n" . v:throwpoint)
endtry
if !empty(v:errors)
    call s:Fail(string(v:errors))
endif
qall!
