# The plan that README.md shows is the plan that is printed.
leanstep plan gpt2 --threads 2 --memory 3GiB > plan.txt
sed -n '/^\$ leanstep plan gpt2 --threads 2 --memory 3GiB/,/^```$/p' "$SOURCE/README.md" | sed '1d;$d' > shown.txt
test -s shown.txt || echo "README.md shows no plan"
grep -vxFf plan.txt shown.txt
exit 0
