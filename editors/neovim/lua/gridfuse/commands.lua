--- Rewriting and explaining the launch at the cursor.
local M = {}

--- A column as the server counts it.
local function units(line, byte, encoding)
  if encoding == 'utf-8' then
    return byte
  elseif vim.fn.has('nvim-0.11') == 1 then
    return vim.str_utfindex(line, encoding, byte)
  end
  local utf32, utf16 = vim.str_utfindex(line, byte)
  return encoding == 'utf-32' and utf32 or utf16
end

--- The byte of a line's first launch, `kernel<<<` or, once it is collected, `kernels.launch(`.
local function launch_byte(line)
  local direct = line:find('<<<', 1, true)
  local collected = line:find('%.launch%s*%(')
  -- On the name, past the dot.
  collected = collected and collected + 1
  return direct and collected and math.min(direct, collected) or direct or collected
end

--- The place of the first launch of a line, else the cursor: the launch of the line is what is meant wherever the cursor stands.
local function launch_position(client, buffer)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_buf_get_lines(buffer, row - 1, row, false)[1] or ''
  local at = launch_byte(line)
  local byte = at and at - 1 or column
  return { line = row - 1, character = units(line, byte, client.offset_encoding) }
end

--- Offers the rewrites of the launches in a range, as `vim.lsp.buf.code_action` takes it; without one, in the cursor's line.
---@param most integer? so many of them, from the first on
---@param range { start: integer[], end: integer[] }?
local function actions(most, range)
  local client = require('gridfuse').client()
  if not client then
    return
  end
  local buffer, window = vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win()
  if not range then
    local row = vim.api.nvim_win_get_cursor(0)[1]
    local length = #(vim.api.nvim_buf_get_lines(0, row - 1, row, false)[1] or '')
    range = { start = { row, 0 }, ['end'] = { row, length } }
  end
  local encoding = client.offset_encoding
  local asked = vim.lsp.util.make_given_range_params(range.start, range['end'], buffer, encoding).range
  require('gridfuse.offers').find(client, buffer, asked, function(offered)
    if not vim.api.nvim_win_is_valid(window) or vim.api.nvim_win_get_buf(window) ~= buffer then
      return
    end
    offered = vim.list_slice(offered, 1, most or #offered)
    vim.api.nvim_win_call(window, function()
      -- Neovim asks anew, and shows and applies what it gets: only what was offered is to be among that.
      vim.lsp.buf.code_action({
        range = range,
        filter = function(action)
          return not action.disabled
            and vim.iter(offered):any(function(offer)
              return offer.title == action.title and vim.deep_equal(offer.data, action.data)
            end)
        end,
        apply = false,
      })
    end)
  end)
end

function M.rewrite()
  actions()
end

--- Offers the rewrites of the launches in a range of the protocol, and moves the cursor there.
---@param uri string
---@param range lsp.Range
---@param encoding string
function M.rewrite_in(uri, range, encoding)
  local item = vim.lsp.util.locations_to_items({ { uri = uri, range = range } }, encoding)[1]
  if not item then
    return
  end
  local buffer = vim.uri_to_bufnr(uri)
  if buffer ~= vim.api.nvim_get_current_buf() then
    vim.cmd.buffer(buffer)
  end
  vim.api.nvim_win_set_cursor(0, { item.lnum, item.col - 1 })
  local last = range['end'].line + 1
  local length = #(vim.api.nvim_buf_get_lines(buffer, last - 1, last, false)[1] or '')
  actions(nil, { start = { item.lnum, item.col - 1 }, ['end'] = { last, length } })
end

--- What the server thinks is best, which it offers first. It is offered alone, not applied.
function M.best()
  actions(1)
end

--- Shows all that is known about the launch of the line, or the kernel at the cursor.
function M.explain()
  local client = require('gridfuse').client()
  if not client then
    return
  end
  local buffer = vim.api.nvim_get_current_buf()
  local argument = { uri = vim.uri_from_bufnr(buffer), position = launch_position(client, buffer) }
  local params = { command = 'gridfuse.explain', arguments = { argument } }
  require('gridfuse').request(client, 'workspace/executeCommand', params, function(error, text)
    if error then
      vim.notify('gridfuse: ' .. error.message, vim.log.levels.ERROR)
    elseif not text or text == vim.NIL then
      vim.notify('gridfuse: put the cursor on a launch or on the name of a kernel', vim.log.levels.INFO)
    else
      vim.lsp.util.open_floating_preview(vim.split(text, '\n'), 'markdown', {
        border = 'rounded',
        focus_id = 'gridfuse-explain',
        max_width = math.floor(vim.o.columns * 0.9),
      })
    end
  end, buffer)
end

return M
