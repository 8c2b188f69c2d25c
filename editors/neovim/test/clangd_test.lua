-- gridfuse beside clangd on one buffer: nothing is said twice, and nothing is contradicted.
-- nvim --headless -u NONE -i NONE -n -l clangd_test.lua
--
-- GRIDFUSE_TEST_WORKSPACE names a directory with bfs.cu and compile_flags.txt in it, GRIDFUSE_TEST_COMMAND the gridfuse program,
-- GRIDFUSE_TEST_CLANGD clangd.
local here = vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, 'S').source:sub(2)))
local session = dofile(here .. '/session.lua')
local wait, notes, workspace = session.wait, session.notes, session.workspace

vim.notify_once = vim.notify

require('gridfuse').setup({
  cmd = { assert(os.getenv('GRIDFUSE_TEST_COMMAND')), 'lsp' },
  settings = { inlayHints = { arguments = true } },
})
vim.lsp.config('clangd', {
  cmd = { assert(os.getenv('GRIDFUSE_TEST_CLANGD')), '--background-index=false' },
  filetypes = { 'cuda' },
  root_markers = { 'compile_flags.txt' },
})
vim.lsp.enable('clangd')
-- What clangd has found is told by a notification.
local parsed = false
local published = vim.lsp.handlers['textDocument/publishDiagnostics']
vim.lsp.handlers['textDocument/publishDiagnostics'] = function(problem, result, context, config)
  parsed = parsed or vim.lsp.get_client_by_id(context.client_id).name == 'clangd'
  return published(problem, result, context, config)
end

vim.cmd.edit(workspace .. '/bfs.cu')
local buffer = vim.api.nvim_get_current_buf()
local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
local document = { uri = vim.uri_from_bufnr(buffer) }

wait('both servers', function()
  return #vim.lsp.get_clients({ bufnr = buffer }) == 2
end)
local clients = {}
for _, client in ipairs(vim.lsp.get_clients({ bufnr = buffer })) do
  clients[client.name] = client
end
assert(clients.clangd.offset_encoding == clients.gridfuse.offset_encoding, 'both count columns in the same way')

local function ask(name, method, params)
  local answer, problem = clients[name]:request_sync(method, params, session.patience, buffer)
  assert(answer and not answer.err, problem or vim.inspect(answer))
  return answer.result ~= vim.NIL and answer.result or nil
end

local function place(text, offset)
  for row, line in ipairs(lines) do
    local column = line:find(text, 1, true)
    if column then
      return { textDocument = document, position = { line = row - 1, character = column - 1 + (offset or 0) } }
    end
  end
  error(text)
end

-- Diagnostics: clangd knows device-side launches to be right, gridfuse says what is slow about them.
wait('clangd has read the file', function()
  return parsed
end)
local found = wait('a diagnostic', function()
  local all = vim.diagnostic.get(buffer)
  return #all > 0 and all
end)
for _, one in ipairs(found) do
  assert(one.source == 'gridfuse', vim.inspect(one))
end
-- An error of the language is clangd's business alone.
vim.api.nvim_buf_set_lines(buffer, -1, -1, false, { '__global__ void wrong(int* p) { *p = undeclared; }' })
found = wait("clangd's error", function()
  local all = vim.diagnostic.get(buffer, { lnum = #lines })
  return #all > 0 and all
end)
vim.wait(1000)
found = vim.diagnostic.get(buffer, { lnum = #lines })
assert(#found == 1 and found[1].source == 'clang', vim.inspect(found))
vim.api.nvim_buf_set_lines(buffer, -2, -1, false, {})

-- What both can do is told apart below; the rest is clangd's.
local both = { hoverProvider = true, codeActionProvider = true, inlayHintProvider = true }
local technical = { textDocumentSync = true, positionEncoding = true, executeCommandProvider = true, workspace = true }
for name in pairs(clients.gridfuse.server_capabilities) do
  local also = clients.clangd.server_capabilities[name]
  assert(not also or both[name] or technical[name] or not clients.gridfuse.server_capabilities[name], name)
end

-- Hovers: gridfuse keeps silent where no launch and no kernel is, and never repeats clangd's lines.
for text, known in pairs({
  ['expand<<<'] = true,
  ['count + 127) / 128, 128>>>'] = true,
  ['begin, count);'] = true,
  ['expand(const int'] = true,
  ['bfs_level(const'] = true,
  ['blockIdx.x'] = false,
  ['make_graph('] = false,
  ['kUnreached'] = false,
}) do
  local at = place(text, 1)
  local theirs, ours = ask('clangd', 'textDocument/hover', at), ask('gridfuse', 'textDocument/hover', at)
  assert((ours ~= nil) == known, text .. ': ' .. vim.inspect(ours))
  local said = {}
  for line in vim.gsplit(theirs and theirs.contents.value or '', '\n') do
    said[vim.trim(line)] = true
  end
  for line in vim.gsplit(ours and ours.contents.value or '', '\n') do
    line = vim.trim(line)
    assert(not said[line] or #line < 4 or vim.startswith(line, '```'), ('%s is said twice at %s'):format(line, text))
    assert(not line:find('^__global__ void %w+%('), ('the head of a kernel is shown twice at %s'):format(text))
  end
end
print('ok: hovers')

-- Code actions have different titles, and each server's are of its own kinds.
local titles = {}
for _, name in ipairs({ 'clangd', 'gridfuse' }) do
  local at = place('count + 127) / 128, 128>>>', 6)
  local range = { start = at.position, ['end'] = at.position }
  local params = { textDocument = document, range = range, context = { diagnostics = {} } }
  for _, action in ipairs(ask(name, 'textDocument/codeAction', params) or {}) do
    assert(not titles[action.title], action.title)
    titles[action.title] = name
  end
end
assert(vim.tbl_contains(vim.tbl_values(titles), 'clangd') and vim.tbl_contains(vim.tbl_values(titles), 'gridfuse'), vim.inspect(titles))
print('ok: code actions')

-- Inlay hints stand in different places: clangd's before arguments, gridfuse's behind them.
local places = {}
for _, name in ipairs({ 'clangd', 'gridfuse' }) do
  local range = { start = { line = 0, character = 0 }, ['end'] = { line = #lines, character = 0 } }
  local hints = ask(name, 'textDocument/inlayHint', { textDocument = document, range = range })
  assert(#hints > 0, name)
  for _, hint in ipairs(hints) do
    local key = hint.position.line .. ':' .. hint.position.character
    assert(not places[key] or places[key] == name, 'two hints at ' .. key)
    places[key] = name
  end
end
print('ok: inlay hints')

-- Of the hierarchy of calls, which both know, there is one.
assert(clients.clangd.server_capabilities.callHierarchyProvider)
assert(not clients.gridfuse:supports_method('textDocument/prepareCallHierarchy'))

assert(#notes == 0, vim.inspect(notes))
for _, client in ipairs(vim.lsp.get_clients()) do
  client:stop(true)
end
print('all passed')
