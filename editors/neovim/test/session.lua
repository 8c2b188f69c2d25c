-- What the tests have in common: the plugin is loaded, messages are collected, and waiting has an end. Used by
-- `dofile(here .. '/session.lua')`; gives the directory in GRIDFUSE_TEST_WORKSPACE, the plugin's, the messages, wait() and its patience.
local here = vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, 'S').source:sub(2)))

local M = {
  -- How long anything may take, in ms: tests/src/patience.rs says it. On a busy machine it is much longer than usual.
  patience = assert(tonumber(os.getenv('GRIDFUSE_TEST_PATIENCE'))),
  workspace = assert(os.getenv('GRIDFUSE_TEST_WORKSPACE')),
  plugin = vim.fs.dirname(here),
  notes = {},
}

vim.opt.runtimepath:prepend(M.plugin)
vim.cmd('filetype plugin on')
vim.cmd('runtime! plugin/gridfuse.lua')

vim.notify = function(text)
  table.insert(M.notes, text)
end

--- Waits until there is something, and gives it.
---@param what string what is waited for
---@param condition fun(): any
function M.wait(what, condition)
  local value
  local done = vim.wait(M.patience, function()
    value = condition()
    return value
  end, 50)
  if not done then
    error('waited in vain: ' .. what, 2)
  end
  print('ok: ' .. what)
  return value
end

return M
