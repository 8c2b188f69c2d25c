if vim.g.loaded_gridfuse then
  return
end
vim.g.loaded_gridfuse = true

vim.api.nvim_create_user_command('GridfuseRewrite', function()
  require('gridfuse.commands').rewrite()
end, { desc = 'Rewrite the launch at the cursor' })

vim.api.nvim_create_user_command('GridfuseBest', function()
  require('gridfuse.commands').best()
end, { desc = 'Offer the best rewrite of the launch at the cursor' })

vim.api.nvim_create_user_command('GridfuseExplain', function()
  require('gridfuse.commands').explain()
end, { desc = 'Explain the launch or kernel at the cursor' })

vim.api.nvim_create_user_command('GridfusePreview', function()
  require('gridfuse.preview').show()
end, { desc = 'Show what a rewrite of the launch at the cursor would change' })

vim.api.nvim_create_user_command('GridfuseGraph', function(command)
  require('gridfuse.graph').show(command.bang)
end, { bang = true, desc = 'Show which function launches which kernel; with ! as a picture' })

vim.api.nvim_create_user_command('GridfuseMeasure', function(command)
  require('gridfuse.measure').run(command.args)
end, { nargs = '*', desc = 'Run the program and its rewrites on a GPU; takes the arguments of the program' })

vim.api.nvim_create_user_command('GridfuseTune', function(command)
  require('gridfuse.measure').tune(command.args)
end, { nargs = '*', desc = 'Search the fastest rewrite on a GPU; takes the arguments of the program' })

vim.api.nvim_create_user_command('GridfuseCancel', function()
  require('gridfuse.measure').cancel()
end, { desc = 'End what is being measured or tuned' })

vim.api.nvim_create_user_command('GridfuseRestart', function()
  require('gridfuse').restart()
end, { desc = 'Restart the server' })
