leanstep plan --params 7e9 --precision bf16 --optimizer adamw --memory 200GB
