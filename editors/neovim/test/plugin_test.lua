-- The plugin in a real Neovim: nvim --headless -u NONE -i NONE -n -l plugin_test.lua
--
-- GRIDFUSE_TEST_WORKSPACE names a directory with bfs.cu and program.cu in it, GRIDFUSE_TEST_COMMAND the program to start as the server.
-- nvcc is faked: see fake_nvcc.sh.
local here = vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, 'S').source:sub(2)))
local session = dofile(here .. '/session.lua')
local wait, notes, workspace = session.wait, session.notes, session.workspace
local command = assert(os.getenv('GRIDFUSE_TEST_COMMAND'))

require('gridfuse').setup({ cmd = { command, 'lsp' }, settings = { inlayHints = { arguments = true } } })
vim.cmd.edit(workspace .. '/bfs.cu')
assert(vim.bo.filetype == 'cuda', vim.bo.filetype)
local buffer = vim.api.nvim_get_current_buf()
local original = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
local launch
for row, line in ipairs(original) do
  if line:find('expand<<<', 1, true) then
    launch = row
  end
end
vim.api.nvim_win_set_cursor(0, { launch, 10 })

-- Diagnostics, hints and lenses come by themselves, each once.
local found = wait('a diagnostic', function()
  local all = vim.diagnostic.get(buffer, { lnum = launch - 1 })
  return #all > 0 and all
end)
assert(found[1].code == 'serialized-launches', vim.inspect(found))
local seen = {}
for _, one in ipairs(found) do
  local key = one.code .. ':' .. one.col
  assert(not seen[key], 'twice: ' .. key)
  seen[key] = true
end
wait('inlay hints, of arguments too as the settings say', function()
  return #vim.lsp.inlay_hint.get({ bufnr = buffer }) >= 3
end)
wait('a code lens', function()
  vim.lsp.codelens.refresh({ bufnr = buffer })
  return #vim.lsp.codelens.get(buffer) > 0
end)

-- Explaining opens a window with the tables.
vim.cmd('GridfuseExplain')
local window = wait('the explanation', function()
  for _, one in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(one).relative ~= '' then
      return one
    end
  end
end)
local text = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\n')
assert(text:find('launch of', 1, true) and text:find('varying', 1, true), text)
assert(not text:find('Flatten', 1, true), text)
assert(text:find('\nblock +128 +constant\n') and not text:find('|---|', 1, true), text)
vim.api.nvim_win_close(window, true)

-- The launch graph is a list that leads to the source, and a picture.
vim.cmd('GridfuseGraph')
local graph = wait('the launch graph', function()
  return vim.bo.filetype == 'gridfuse-graph' and vim.api.nvim_get_current_buf()
end)
local graph_lines = vim.api.nvim_buf_get_lines(graph, 0, -1, false)
local graph_text = table.concat(graph_lines, '\n')
assert(graph_text:find('\nbfs_level: %d+ warning'), graph_text)
assert(graph_text:find('\n  launches expand, up to blockDim%.x %* gridDim%.x per grid'), graph_text)
for row, line in ipairs(graph_lines) do
  if line:find('launches expand', 1, true) then
    vim.api.nvim_win_set_cursor(0, { row, 0 })
  end
end
vim.api.nvim_feedkeys(vim.keycode('<cr>'), 'x', false)
assert(vim.api.nvim_get_current_buf() == buffer)
assert(vim.api.nvim_get_current_line():find('void expand(', 1, true), vim.api.nvim_get_current_line())
vim.cmd('bwipeout ' .. graph)
local opened
local open = vim.ui.open
vim.ui.open = function(file)
  opened = file
end
vim.cmd('GridfuseGraph!')
wait('the picture', function()
  return opened
end)
vim.ui.open = open
assert(table.concat(vim.fn.readfile(opened), '\n'):find('^<svg'), opened)

-- A preview shows a difference; nothing is changed before it's applied.
vim.api.nvim_win_set_cursor(0, { launch, 10 })
local select = vim.ui.select
vim.ui.select = function(items, options, choose)
  choose(vim.iter(items):find(function(item)
    return options.format_item(item):find('Collect launches per block', 1, true) ~= nil
  end))
end
vim.cmd('GridfusePreview')
local preview = wait('the preview', function()
  return vim.b.gridfuse_preview and vim.api.nvim_get_current_buf()
end)
vim.ui.select = select
local rewritten = table.concat(vim.api.nvim_buf_get_lines(preview, 0, -1, false), '\n')
assert(rewritten:find('gridfuse::Aggregator<gridfuse::PerBlock', 1, true), rewritten)
assert(vim.wo.diff and vim.wo.winbar:find('assumes', 1, true), vim.wo.winbar)
assert(vim.deep_equal(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), original))
vim.api.nvim_feedkeys('q', 'x', false)
assert(#vim.api.nvim_list_tabpages() == 1 and not vim.wo.diff)
assert(vim.deep_equal(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), original))
vim.api.nvim_set_current_buf(buffer)

local function report()
  for _, one in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(one) and vim.bo[one].filetype == 'gridfuse-measurement' then
      return one
    end
  end
end

local function has(wanted)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n'):find(wanted, 1, true) ~= nil
end

-- Measuring shows a report, in whose lines rewrites can be applied.
vim.cmd('GridfuseMeasure --input rmat')
local measured = wait('the measurement', report)
local lines = vim.api.nvim_buf_get_lines(measured, 0, -1, false)
assert(lines[1]:find('NVIDIA H200', 1, true), lines[1])
assert(lines[4]:find('^original'), lines[4])
assert(lines[5]:find('^optimize'), lines[5])
assert(table.concat(lines, '\n'):find('agrees (40 buffers)', 1, true))
vim.api.nvim_feedkeys(vim.keycode('5G<cr>'), 'x', false)
wait('the rewrite of the line is applied', function()
  return has('gridfuse::ThreadReuseInStream<')
end)
assert(not report(), 'the report is closed')
vim.api.nvim_set_current_buf(buffer)
vim.cmd('silent undo')
wait('the original again', function()
  return not has('gridfuse::Aggregator')
end)

-- So does the lens of the kernel, which asks for the program's arguments.
local run = wait('the lens that measures', function()
  vim.lsp.codelens.refresh({ bufnr = buffer })
  return vim.iter(vim.lsp.codelens.get(buffer)):find(function(one)
    return one.command and one.command.command == 'gridfuse.measure'
  end)
end)
assert(run.command.title == 'Run on GPU', vim.inspect(run))
vim.ui.input = function(_, enter)
  enter('--input tree')
end
vim.ui.select = function(items, _, choose)
  choose(vim.iter(items):find(function(item)
    return vim.inspect(item):find('gridfuse.measure', 1, true) ~= nil
  end))
end
vim.api.nvim_win_set_cursor(0, { run.range.start.line + 1, 0 })
vim.lsp.codelens.run()
wait('the measurement that the lens asks for', report)
vim.cmd.close()

-- What is best is offered alone, as it takes something for granted.
local offered = {}
vim.ui.select = function(items, options, choose)
  for _, item in ipairs(items) do
    table.insert(offered, options.format_item and options.format_item(item) or tostring(item))
  end
  choose(nil, nil)
end
vim.api.nvim_win_set_cursor(0, { launch, 10 })
-- Neovim tells the server a little later that the header is gone, too.
vim.wait(1000)
vim.cmd('GridfuseBest')
wait('the best rewrite is offered', function()
  return #offered > 0
end)
assert(#offered == 1 and offered[1]:find(' assumption', 1, true), vim.inspect(offered))
assert(not has('gridfuse::Aggregator'), 'nothing is applied unasked')
local best = offered[1]
offered = {}
vim.cmd('GridfuseRewrite')
wait('the list of the rewrites', function()
  return #offered > 1
end)
assert(offered[1] == best, 'the best is the first of the list: ' .. vim.inspect(offered))

-- Of a kernel that waits for its children, that is the fix of the wait.
vim.fn.writefile({
  '__global__ void child(int* out) { out[threadIdx.x] += 1; }',
  '__global__ void parent(int* out) {',
  '    child<<<1, 32>>>(out);',
  '    cudaDeviceSynchronize();',
  '}',
  'void run(int* out) { parent<<<1, 1>>>(out); }',
}, workspace .. '/waits.cu')
vim.cmd.edit(workspace .. '/waits.cu')
wait('the finding about the wait', function()
  return #vim.diagnostic.get(0, { lnum = 3 }) > 0
end)
vim.api.nvim_win_set_cursor(0, { 4, 4 })
offered = {}
vim.cmd('GridfuseBest')
wait('the fix of the wait', function()
  return #offered > 0
end)
assert(#offered == 1 and offered[1]:find('wait', 1, true), vim.inspect(offered))
vim.cmd.buffer(buffer)

-- A server that is started anew says the same.
local before = vim.lsp.get_clients({ name = 'gridfuse' })[1].id
vim.cmd('GridfuseRestart')
wait('another server', function()
  local client = vim.lsp.get_clients({ name = 'gridfuse', bufnr = buffer })[1]
  return client and client.id ~= before and client.initialized
end)
wait('its diagnostic', function()
  local all = vim.diagnostic.get(buffer, { lnum = launch - 1 })
  return #all == #found and all[1].code == found[1].code
end)

-- A rewrite is applied: the choice goes through vim.ui.select.
vim.ui.select = function(items, options, choose)
  offered = {}
  for index, item in ipairs(items) do
    local label = options.format_item and options.format_item(item) or tostring(item)
    table.insert(offered, label)
    if label:find('Collect launches per block', 1, true) then
      choose(item, index)
      return
    end
  end
  choose(nil, nil)
end
vim.api.nvim_set_current_buf(buffer)
vim.api.nvim_win_set_cursor(0, { launch, 10 })
vim.cmd('GridfuseRewrite')
wait('aggregate-block is applied', function()
  return has('gridfuse::Aggregator<gridfuse::PerBlock')
end)
vim.cmd('silent write')
local header = workspace .. '/gridfuse.cuh'
assert(vim.uv.fs_stat(header).size > 0, 'the header is written with the source that includes it')

-- Tuning says how far it is, shows what was tried, and applies the fastest.
local echoed = {}
local echo = vim.api.nvim_echo
vim.api.nvim_echo = function(chunks, ...)
  table.insert(echoed, chunks[1][1])
  return echo(chunks, ...)
end
vim.cmd.edit(workspace .. '/program.cu')
local program = vim.api.nvim_get_current_buf()
wait('the server knows the program', function()
  return #vim.diagnostic.get(program) > 0
end)
vim.cmd('GridfuseTune')
wait('how far the search is', function()
  return vim.iter(echoed):any(function(said)
    return said:find('^gridfuse: tuning, %d+ s: %d') ~= nil
  end)
end)
vim.cmd('GridfuseCancel')
wait('the search is cancelled', function()
  return not require('gridfuse.measure').running()
end)
assert(not report() and #notes == 0, vim.inspect(notes))
vim.cmd('GridfuseTune')
local tuned = wait('the tuning', report)
vim.api.nvim_echo = echo
lines = vim.api.nvim_buf_get_lines(tuned, 0, -1, false)
text = table.concat(lines, '\n')
assert(lines[1]:find('Fake GPU', 1, true), lines[1])
assert(lines[5]:find('^threshold=64%S*aggregate%-block'), text)
assert(text:find('assumes: .*independent'), text)
vim.api.nvim_feedkeys(vim.keycode('<cr>'), 'x', false)
wait('the fastest is applied', function()
  local now = table.concat(vim.api.nvim_buf_get_lines(program, 0, -1, false), '\n')
  return now:find('kChildThreshold = 64;', 1, true) ~= nil
end)
vim.api.nvim_set_current_buf(program)
vim.cmd('silent write')

-- The health check finds everything in order.
vim.cmd('checkhealth gridfuse')
local health = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
assert(health:find('Neovim is new enough', 1, true), health)
assert(health:find('runs in', 1, true), health)
assert(not health:find('ERROR', 1, true), health)
assert(not health:find('can measure', 1, true), health)
-- What is there to measure with, it has from the program, which knows more places than PATH.
assert(health:find('compiler: ', 1, true) and health:find('compile commands: ', 1, true), health)
assert(not health:find('on PATH: :GridfuseMeasure', 1, true), health)
print('ok: health')

-- The help file has its tags.
vim.cmd('helptags ' .. vim.fn.fnameescape(session.plugin .. '/doc'))
vim.cmd('help :GridfuseMeasure')
assert(vim.api.nvim_buf_get_name(0):find('gridfuse.txt', 1, true))
os.remove(session.plugin .. '/doc/tags')
assert(#notes == 0, vim.inspect(notes))

for _, client in ipairs(vim.lsp.get_clients()) do
  client:stop(true)
end
print('all passed')
