--- What the server offers for the launches in a range.
local M = {}

--- Whether an action is a rewrite of a launch.
local function rewrites(action)
  local data = action.data
  return type(data) == 'table' and type(data.rewrite) == 'string'
end

--- Whether an action mends what is found: not a comment that keeps findings quiet, which is no launch's business.
local function mends(action)
  local found = (action.diagnostics or {})[1]
  local about = found and tostring(found.code) or ''
  return action.kind == 'quickfix' and action.edit ~= nil and found ~= nil and not vim.endswith(about, '-suppression')
end

--- How soon a server that is still reading is asked again, in ms.
local AGAIN = 200

--- Whether the server is still reading the code: it has answered with what it knew by then.
local function is_reading(client)
  return vim.iter(pairs(client.progress.pending)):any(function(token)
    return type(token) == 'string' and vim.startswith(token, 'gridfuse/working/')
  end)
end

--- Asks for the rewrites that can be applied, the best one first. Where there are none, for the fixes of what is found there: a kernel that
--- waits for its children can't be rewritten before the wait is replaced.
---@param client vim.lsp.Client
---@param buffer integer
---@param range lsp.Range
---@param found fun(actions: lsp.CodeAction[])
function M.find(client, buffer, range, found)
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(buffer) },
    range = range,
    context = { diagnostics = {}, triggerKind = 1 },
  }
  require('gridfuse').request(client, 'textDocument/codeAction', params, function(error, actions)
    if error then
      vim.notify('gridfuse: ' .. error.message, vim.log.levels.ERROR)
      return
    end
    local enabled = vim.tbl_filter(function(action)
      return not action.disabled
    end, actions or {})
    local offered = vim.tbl_filter(rewrites, enabled)
    if #offered == 0 then
      offered = vim.tbl_filter(mends, enabled)
    end
    if #offered == 0 and is_reading(client) and vim.api.nvim_buf_is_valid(buffer) then
      vim.defer_fn(function()
        M.find(client, buffer, range, found)
      end, AGAIN)
    elseif #offered == 0 then
      vim.notify('gridfuse: no launch of this line can be rewritten', vim.log.levels.INFO)
    else
      found(offered)
    end
  end, buffer)
end

return M
