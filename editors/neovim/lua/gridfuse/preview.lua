--- :GridfusePreview: what a rewrite of the launch at the cursor would change, as a difference.
local M = {}

--- The changes of an edit: those of a document, and the names of the other files.
local function changes(edit, uri)
  local own, others = {}, {}
  local function note(file, edits)
    if file == uri then
      vim.list_extend(own, edits)
    else
      others[vim.fs.basename(vim.uri_to_fname(file))] = true
    end
  end
  for _, change in ipairs(edit.documentChanges or {}) do
    if change.textDocument then
      note(change.textDocument.uri, change.edits)
    elseif change.uri then
      others[vim.fs.basename(vim.uri_to_fname(change.uri))] = true
    end
  end
  for file, edits in pairs(edit.changes or {}) do
    note(file, edits)
  end
  return own, vim.tbl_keys(others)
end

--- Shows the buffer and what the edit makes of it side by side, in a tab of their own.
---@param assumptions string[] what the edit takes for granted
local function difference(client, buffer, title, edit, assumptions)
  local uri = vim.uri_from_bufnr(buffer)
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  local own, others = changes(edit, uri)
  vim.cmd('tab split')
  vim.api.nvim_set_current_buf(buffer)
  local tab, left = vim.api.nvim_get_current_tabpage(), vim.api.nvim_get_current_win()
  vim.cmd('rightbelow vnew')
  local after = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_lines(after, 0, -1, false, vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
  vim.lsp.util.apply_text_edits(own, after, client.offset_encoding)
  vim.bo[after].buftype = 'nofile'
  vim.bo[after].bufhidden = 'wipe'
  vim.bo[after].swapfile = false
  vim.bo[after].syntax = 'cuda'
  vim.bo[after].modifiable = false
  vim.b[after].gridfuse_preview = true
  local said = { title }
  for _, assumption in ipairs(assumptions) do
    table.insert(said, 'assumes ' .. assumption)
  end
  if #others > 0 then
    table.insert(said, 'changes ' .. table.concat(others, ', ') .. ', too')
  end
  table.insert(said, '<Enter> applies, q closes')
  vim.wo.winbar = (table.concat(said, ' | '):gsub('%%', '%%%%'):gsub('\n', ' '))
  vim.cmd('diffthis')
  vim.api.nvim_win_call(left, function()
    vim.cmd('diffthis')
  end)
  local function close()
    vim.api.nvim_win_call(left, function()
      vim.cmd('diffoff')
    end)
    vim.cmd('tabclose ' .. vim.api.nvim_tabpage_get_number(tab))
  end
  vim.keymap.set('n', 'q', close, { buffer = after, nowait = true })
  vim.keymap.set('n', '<cr>', function()
    close()
    if vim.api.nvim_buf_get_changedtick(buffer) ~= tick then
      vim.notify('gridfuse: the text changed since the preview; preview the rewrite again', vim.log.levels.WARN)
      return
    end
    vim.lsp.util.apply_workspace_edit(edit, client.offset_encoding)
  end, { buffer = after, nowait = true })
end

--- Lets the user choose a rewrite of the launches in the cursor's line, and shows what it would change.
function M.show()
  local plugin = require('gridfuse')
  local client = plugin.client()
  if not client then
    return
  end
  local buffer = vim.api.nvim_get_current_buf()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local range = { start = { line = row, character = 0 }, ['end'] = { line = row + 1, character = 0 } }
  local function failed(error)
    vim.notify('gridfuse: ' .. error.message, vim.log.levels.ERROR)
  end
  require('gridfuse.offers').find(client, buffer, range, function(offered)
    local options = {
      prompt = 'Preview which rewrite?',
      format_item = function(action)
        return action.title
      end,
    }
    vim.ui.select(offered, options, function(action)
      if not action then
        return
      end
      local function show(edit)
        local rewrite = (action.data or {}).rewrite
        if not rewrite then
          return difference(client, buffer, action.title, edit, {})
        end
        -- Neovim knows no annotations of edits, in which the assumptions stand; what the command answers has them.
        local argument = { uri = vim.uri_from_bufnr(buffer), line = row, rewrites = rewrite }
        local command = { command = 'gridfuse.rewrite', arguments = { argument } }
        plugin.request(client, 'workspace/executeCommand', command, function(_, result)
          difference(client, buffer, action.title, edit, result and result.assumptions or {})
        end, buffer)
      end
      if action.edit then
        return show(action.edit)
      end
      plugin.request(client, 'codeAction/resolve', action, function(failure, resolved)
        if failure then
          return failed(failure)
        end
        show(resolved.edit)
      end, buffer)
    end)
  end)
end

return M
