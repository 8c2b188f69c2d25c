-- The server without setup(), by what lsp/ holds, in a real Neovim 0.11: nvim --headless -u NONE -i NONE -n -l enable_test.lua
--
-- GRIDFUSE_TEST_WORKSPACE names a directory with bfs.cu in it; `gridfuse` is on PATH.
local here = vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, 'S').source:sub(2)))
local session = dofile(here .. '/session.lua')
local wait, notes, workspace = session.wait, session.notes, session.workspace

vim.lsp.enable('gridfuse')
vim.cmd.edit(workspace .. '/bfs.cu')
local buffer = vim.api.nvim_get_current_buf()
local function launch()
  for row, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    if line:find('expand<<<', 1, true) then
      return row
    end
  end
end
wait('a diagnostic', function()
  return #vim.diagnostic.get(buffer, { lnum = launch() - 1 }) > 0
end)

assert(not vim.iter(vim.api.nvim_buf_get_keymap(buffer, 'n')):any(function(key)
  return (key.desc or ''):find('^gridfuse: ') ~= nil
end), 'no keys but those that are asked for')

-- The lens leads to the launches.
local lens = wait('a code lens', function()
  vim.lsp.codelens.refresh({ bufnr = buffer })
  return vim.iter(vim.lsp.codelens.get(buffer)):find(function(one)
    return one.command and one.command.command == 'gridfuse.showLaunches'
  end)
end)
vim.api.nvim_win_set_cursor(0, { lens.range.start.line + 1, 0 })
vim.ui.select = function(items, _, choose)
  choose(vim.iter(items):find(function(item)
    return vim.inspect(item):find('showLaunches', 1, true) ~= nil
  end))
end
vim.lsp.codelens.run()
wait('the list of launches', function()
  return #vim.fn.getqflist() == 1 and vim.fn.getqflist()[1].lnum == launch()
end)
vim.cmd.cclose()

-- The lens beside it leads to the rewrites, wherever the cursor's column is.
vim.api.nvim_set_current_buf(buffer)
local listed
vim.ui.select = function(items, options, choose)
  if options.kind == 'codeaction' then
    listed = vim.tbl_map(options.format_item, items)
    return choose(nil)
  end
  choose(vim.iter(items):find(function(item)
    return vim.inspect(item):find('showRewrites', 1, true) ~= nil
  end))
end
vim.api.nvim_win_set_cursor(0, { lens.range.start.line + 1, 0 })
-- Rewrites take longer to count than launches.
wait('the lens of the rewrites', function()
  vim.lsp.codelens.refresh({ bufnr = buffer })
  return vim.iter(vim.lsp.codelens.get(buffer)):find(function(one)
    return one.command and one.command.command == 'gridfuse.showRewrites'
  end)
end)
vim.lsp.codelens.run()
wait('the list of rewrites', function()
  return listed and vim.iter(listed):any(function(title)
    return title:find('Collect launches per block', 1, true) ~= nil
  end)
end)
assert(vim.api.nvim_win_get_cursor(0)[1] == launch(), 'the cursor is at the launch')

-- A rewrite comes with the header that it needs, on disk once the source is saved.
vim.ui.select = function(items, options, choose)
  for index, item in ipairs(items) do
    if options.format_item(item):find('Collect launches per block', 1, true) then
      return choose(item, index)
    end
  end
  error(vim.inspect(items))
end
vim.api.nvim_set_current_buf(buffer)
vim.api.nvim_win_set_cursor(0, { launch(), 10 })
vim.cmd('GridfuseRewrite')
wait('the rewrite', function()
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
  return text:find('gridfuse::Aggregator<gridfuse::PerBlock', 1, true) ~= nil
end)
vim.cmd('silent write')
assert(vim.uv.fs_stat(workspace .. '/gridfuse.cuh').size > 0, 'the header is written with the source that includes it')
assert(#notes == 0, vim.inspect(notes))
for _, client in ipairs(vim.lsp.get_clients()) do
  client:stop(true)
end
print('all passed')
