--- :GridfuseGraph: which function launches which kernel, as a list that leads to the source, or as a picture.
local M = {}

--- The lines of the list, and for each line which function it tells of.
---@param drawn table the server's answer
---@return string[] lines, integer[] nodes from 1, by line
function M.lines(drawn)
  local lines, nodes = {}, {}
  local function add(text, node)
    table.insert(lines, text)
    nodes[#lines] = node
  end
  add('Launch graph: <Enter> goes to the function of the line, q closes')
  for index, node in ipairs(drawn.nodes) do
    local said = {}
    for _, launch in ipairs(drawn.launches) do
      if launch.from + 1 == index then
        local verb = launch.certain and 'launches' or 'may launch'
        local count = launch.count ~= '' and ', ' .. launch.count or ''
        local text = ('  %s %s%s'):format(verb, drawn.nodes[launch.to + 1].label, count)
        -- A function may launch the same kernel in several places.
        if not said[text] then
          said[text] = true
          table.insert(said, { text, launch.to + 1 })
        end
      end
    end
    if #said > 0 or node.findings ~= '' then
      add('')
      add(node.label .. (node.findings ~= '' and ': ' .. node.findings or ''), index)
      for _, one in ipairs(said) do
        add(one[1], one[2])
      end
    end
  end
  if #drawn.nodes == 0 then
    add('')
    add('No kernel is launched in this file.')
  end
  return lines, nodes
end

--- Writes the picture to a file and opens it with the program that the system opens pictures with.
local function picture(svg)
  local file = vim.fn.tempname() .. '.svg'
  vim.fn.writefile(vim.split(svg, '\n'), file)
  local _, error = vim.ui.open(file)
  if error then
    vim.notify('gridfuse: the picture is ' .. file .. ', and nothing opens it: ' .. error, vim.log.levels.WARN)
  end
end

local function list(drawn, encoding)
  local lines, nodes = M.lines(drawn)
  local before = vim.api.nvim_get_current_win()
  vim.cmd('botright new')
  local window, buffer = vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].filetype = 'gridfuse-graph'
  vim.bo[buffer].modifiable = false
  vim.keymap.set('n', 'q', '<cmd>close<cr>', { buffer = buffer, nowait = true })
  vim.keymap.set('n', '<cr>', function()
    local index = nodes[vim.api.nvim_win_get_cursor(window)[1]]
    local location = index and drawn.nodes[index].location
    if not location or location == vim.NIL then
      return
    end
    if vim.api.nvim_win_is_valid(before) then
      vim.api.nvim_set_current_win(before)
    end
    local item = vim.lsp.util.locations_to_items({ location }, encoding)[1]
    if item then
      vim.cmd("normal! m'")
      vim.cmd.edit(vim.fn.fnameescape(item.filename))
      vim.api.nvim_win_set_cursor(0, { item.lnum, item.col - 1 })
    end
  end, { buffer = buffer, nowait = true })
end

--- Shows the launch graph of the current buffer.
---@param as_picture boolean
function M.show(as_picture)
  local client = require('gridfuse').client()
  if not client then
    return
  end
  local buffer = vim.api.nvim_get_current_buf()
  local params = { command = 'gridfuse.graph', arguments = { { uri = vim.uri_from_bufnr(buffer) } } }
  require('gridfuse').request(client, 'workspace/executeCommand', params, function(error, drawn)
    if error then
      vim.notify('gridfuse: ' .. error.message, vim.log.levels.ERROR)
    elseif as_picture then
      picture(drawn.svg)
    else
      list(drawn, client.offset_encoding)
    end
  end, buffer)
end

return M
